// Sorting and filtering of tables. A table may have thousands of rows.
import { all, announce, nextFrame } from "./dom.js";

const SYNCHRONOUS_ROWS = 200; // so many rows are changed at once
const BATCH_ROWS = 60; // of more rows: what the reader sees first, then as many each frame
const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const pending = new Map(); // table body → function that finishes its changes

/** Finish the changes of all tables that are still under way. */
export const finishChanges = () => { for (const finish of [...pending.values()]) finish(); };

/** Apply a change to rows of a table, a batch of rows a frame. */
function changeRows(body, rows, change) {
  pending.get(body)?.();
  let done = 0;
  const next = (count) => { change(rows.slice(done, done + count)); done += count; };
  const finish = () => { pending.delete(body); next(rows.length); };
  next(rows.length > SYNCHRONOUS_ROWS ? BATCH_ROWS : rows.length);
  pending.set(body, finish);
  (async () => {
    while (done < rows.length) {
      await nextFrame();
      if (pending.get(body) !== finish) return;
      next(BATCH_ROWS);
    }
    pending.delete(body);
  })();
}

function bodyRows(block) {
  pending.get(block.querySelector("tbody"))?.();
  return all("tbody tr", block);
}

/** Return the text of a cell without its picture and what is folded away. */
export function cellText(cell) {
  if (!cell.childElementCount) return cell.textContent;
  const parts = [...cell.childNodes].filter((part) => !part.matches?.("details, svg"));
  return parts.map((part) => part.textContent).join("");
}

// Changed rows would make the browser measure every cell anew, so columns keep their widths.
function freezeWidths(table) {
  if (table.style.tableLayout) return;
  const widths = all("th", table).map((th) => th.getBoundingClientRect().width);
  table.style.width = `${table.getBoundingClientRect().width}px`;
  all("th", table).forEach((th, i) => { th.style.width = `${widths[i]}px`; });
  table.style.tableLayout = "fixed";
}

/** Show all columns of a table, or only those that matter most. */
function toggleColumns(button) {
  const block = button.closest(".table");
  button.setAttribute("aria-pressed", block.classList.toggle("all-columns"));
  // Frozen widths are those of the columns that were visible.
  for (const frozen of all("table, th", block)) frozen.removeAttribute("style");
}

/** Sort by a column; a second time, in the opposite order. Empty cells come last. */
function sortBy(heading) {
  const table = heading.closest("table");
  freezeWidths(table);
  const headings = all("th", table);
  const index = headings.indexOf(heading);
  const isNumeric = heading.classList.contains("n");
  // The largest number and the first name are what is usually wanted.
  const [first, second] = isNumeric ? ["descending", "ascending"] : ["ascending", "descending"];
  const order = heading.getAttribute("aria-sort") === first ? second : first;
  headings.forEach((other) => other.removeAttribute("aria-sort"));
  heading.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const keyed = bodyRows(table).map((row) => {
    const cell = row.cells[index];
    const key = !isNumeric ? cellText(cell) : cell.dataset.v === undefined ? null : Number(cell.dataset.v);
    return { row, key, isMissing: key === null || key === "" };
  });
  keyed.sort((a, b) => {
    if (a.isMissing || b.isMissing) return a.isMissing - b.isMissing;
    return sign * (isNumeric ? a.key - b.key : collator.compare(a.key, b.key));
  });
  const [body] = table.tBodies;
  body.replaceChildren();
  changeRows(body, keyed.map(({ row }) => row), (rows) => body.append(...rows));
  table.closest(".scroll").scrollTop = 0;
  announce(`Sorted by ${heading.textContent.trim()}, ${order}`);
}

const searchTexts = new WeakMap(); // row → its text in lower case

function searchText(row) {
  if (!searchTexts.has(row)) searchTexts.set(row, [...row.cells].map(cellText).join("\n").toLowerCase());
  return searchTexts.get(row);
}

/** Show only the rows that contain a text. */
function filterRows(block, text) {
  freezeWidths(block.querySelector("table"));
  const wanted = text.trim().toLowerCase();
  const rows = bodyRows(block);
  const shown = [];
  for (const row of rows) {
    if (searchText(row).includes(wanted)) shown.push(row);
    else row.hidden = true;
  }
  changeRows(block.querySelector("tbody"), shown, (some) => some.forEach((row) => { row.hidden = false; }));
  const [left, total] = [shown.length.toLocaleString("en"), rows.length.toLocaleString("en")];
  block.querySelector(".rows").textContent = wanted ? `${left} of ${total}` : total;
  announce(`${left} of ${total} rows`);
}

/** Return the rows that the filter shows, numbers unrounded. */
export function tableRows(block) {
  const header = all("th", block).map((th) => th.dataset.column);
  const rows = bodyRows(block).filter((row) => !row.hidden);
  return [header, ...rows.map((row) => [...row.cells].map((cell) => cell.dataset.v ?? cellText(cell)))];
}

export function startTables() {
  document.addEventListener("click", ({ target }) => {
    const heading = target.closest("th");
    if (heading) sortBy(heading);
    const button = target.closest("button.columns");
    if (button) toggleColumns(button);
  });
  document.addEventListener("input", ({ target }) => {
    const block = target.closest(".table");
    if (block && target.type === "search") filterRows(block, target.value);
  });
  document.addEventListener("focusin", ({ target }) => {
    // The browser does not scroll to a heading of which a part is visible.
    if (target.matches("th :focus-visible")) target.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  // A class, because td:has(details[open]) would be matched against every cell on each change of rows.
  document.addEventListener("toggle", ({ target }) => {
    target.closest?.("td")?.classList.toggle("unfolded", target.open);
  }, true);
  // Text that is cut off is shown as a tooltip.
  document.addEventListener("pointerover", ({ target }) => {
    const cell = target.closest?.("td");
    if (!cell || cell.title) return;
    const part = cell.querySelector("div > span") ?? cell;
    if (part.scrollWidth > part.clientWidth) cell.title = cellText(cell);
  });
}

// Painting long tables takes half of each frame, so on pages with more rows they and the plots
// are painted only while they are visible. That begins with the first input, so that programs,
// such as those that take pictures of whole pages, find everything painted.
const MAX_PAINTED_ROWS = 600;

export const hasFewRows = () => all(".scroll.long tbody tr").length <= MAX_PAINTED_ROWS;

export async function layOutTables() {
  for (const scroll of all(".scroll.long")) {
    scroll.classList.add("laid-out");
    await nextFrame();
  }
}

export function paintVisibleOnly() {
  const begin = () => document.documentElement.classList.add("long-page");
  for (const input of ["pointermove", "pointerdown", "wheel", "keydown"]) {
    addEventListener(input, begin, { capture: true, once: true, passive: true });
  }
}
