// The list of runs: renewed each second, searched and sorted here.
import { all, announce } from "../page/dom.js";
import { startTheme } from "../page/theme.js";
import { renew } from "./answers.js";
import { element, progressBar } from "./elements.js";

const MOST_DRAWN = 500; // rows in the page; a search finds the others
const TIMES = ["start", "wall"];
const FIRST_ORDER = { column: "start", order: "descending" };
const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

const headings = all("th");
const names = headings.map((heading) => heading.dataset.column);
const [body] = document.querySelector("table").tBodies;
const search = document.getElementById("search");

const runs = new Map(); // ID → run, as the server describes it
const drawn = new Map(); // ID → its row in the page, and the version of the run
const sorting = { ...FIRST_ORDER };
let version = 0;

// The search and the order are part of the address, so that they are there again after a report.
// The token is not: it has moved into a cookie.
function keepState() {
  const state = new URLSearchParams();
  if (search.value) state.set("search", search.value);
  if (sorting.column !== FIRST_ORDER.column || sorting.order !== FIRST_ORDER.order) {
    state.set("sort", sorting.column);
    state.set("order", sorting.order);
  }
  const text = state.toString();
  history.replaceState(null, "", location.pathname + (text && `#${text}`));
}

function readState() {
  const state = new URLSearchParams(location.hash.slice(1));
  search.value = state.get("search") ?? "";
  if (names.includes(state.get("sort"))) {
    sorting.column = state.get("sort");
    sorting.order = state.get("order") === "ascending" ? "ascending" : "descending";
  }
}

function drawCell(cell, name, run) {
  const made = element("td", "", cell.tone);
  const text = element("bdi", cell.text);
  if (name === "run" && run.page) {
    const link = element("a");
    link.href = run.page;
    link.append(text);
    made.append(link);
  } else made.append(text);
  made.dataset.column = name;
  const heading = headings[names.indexOf(name)];
  if (heading.classList.contains("n")) {
    made.classList.add("n");
    // On a small screen, a number stands alone; times need no label.
    if (!TIMES.includes(name)) made.dataset.label = heading.textContent.trim();
  }
  if (cell.share !== null) made.append(progressBar(cell.share));
  if (cell.below) made.append(element("small", cell.below));
  if (cell.help || name === "run") made.title = cell.help || [cell.text, cell.below].filter(Boolean).join("\n");
  return made;
}

/** Return the row of a run, which is made anew if the run has changed. */
function drawRow(run) {
  const known = drawn.get(run.id);
  if (known?.version === run.version) return known.row;
  const row = element("tr");
  row.append(...run.cells.map((cell, i) => drawCell(cell, names[i], run)));
  // A link that is focused stays focused.
  if (known?.row.contains(document.activeElement)) queueMicrotask(() => row.querySelector("a")?.focus({ preventScroll: true }));
  drawn.set(run.id, { row, version: run.version });
  return row;
}

function found() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [...runs.values()].filter((run) => words.every((word) => run.words.includes(word)));
  const index = names.indexOf(sorting.column);
  const isNumeric = headings[index].classList.contains("n");
  const sign = sorting.order === "ascending" ? 1 : -1;
  const key = (run) => (isNumeric ? run.cells[index].value : run.cells[index].text || null);
  return rows.sort((a, b) => {
    const [left, right] = [key(a), key(b)];
    if (left === null || right === null) return (left === null) - (right === null);
    return sign * (isNumeric ? left - right : collator.compare(left, right)) || collator.compare(a.id, b.id);
  });
}

function draw() {
  const rows = found();
  const shown = rows.slice(0, MOST_DRAWN).map(drawRow);
  // Only what differs is moved, so that a selection and the focus stay.
  shown.forEach((row, i) => { if (body.children[i] !== row) body.insertBefore(row, body.children[i] ?? null); });
  while (body.children.length > shown.length) body.lastElementChild.remove();
  headings.forEach((heading, i) => {
    if (names[i] === sorting.column) heading.setAttribute("aria-sort", sorting.order);
    else heading.removeAttribute("aria-sort");
  });
  const total = runs.size.toLocaleString("en");
  const plural = runs.size === 1 ? "run" : "runs";
  const live = [...runs.values()].filter((run) => run.page?.startsWith("live-")).length;
  const part = rows.length < runs.size ? `${rows.length.toLocaleString("en")} of ` : "";
  document.getElementById("amount").textContent = `${part}${total} ${plural}${live ? `, ${live} live` : ""}`;
  const more = document.getElementById("more");
  more.hidden = rows.length <= MOST_DRAWN;
  more.textContent = `The first ${MOST_DRAWN} are shown: search for the others.`;
  return rows.length;
}

function use(answer) {
  if (answer.version < version) { // the server was started again: the next answer has all runs
    runs.clear();
    drawn.clear();
    version = 0;
    return true;
  }
  version = answer.version;
  answer.removed.forEach((id) => { runs.delete(id); drawn.delete(id); });
  answer.rows.forEach((run) => runs.set(run.id, run));
  const empty = document.getElementById("empty");
  empty.hidden = runs.size > 0 && !answer.note;
  empty.textContent = runs.size ? answer.note : answer.is_known ? answer.note || answer.hint : "Looking for runs …";
  document.getElementById("runs").hidden = !runs.size;
  if (answer.rows.length || answer.removed.length) draw();
  document.documentElement.dataset.state = answer.is_known ? "drawn" : "looking";
  return true;
}

startTheme();
readState();
keepState();
document.documentElement.classList.add("scripted");
search.addEventListener("input", () => {
  keepState();
  announce(`${draw()} of ${runs.size} runs`);
});
document.querySelector("thead").addEventListener("click", ({ target }) => {
  const heading = target.closest("th");
  if (!heading) return;
  const first = heading.classList.contains("n") ? "descending" : "ascending";
  const second = first === "ascending" ? "descending" : "ascending";
  const isSame = sorting.column === heading.dataset.column;
  sorting.order = isSame && sorting.order === first ? second : first;
  sorting.column = heading.dataset.column;
  keepState();
  draw();
  announce(`Sorted by ${heading.textContent.trim()}, ${sorting.order}`);
});
renew(() => `runs.json?since=${version}`, use);
