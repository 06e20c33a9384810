// Buttons that copy or download what a figure or a table shows.
import { all, announce } from "./dom.js";
import { pictureOf } from "./pictures.js";
import { plotRows } from "./plots.js";
import { tableRows } from "./tables.js";

const spentRows = (figure) => [
  ["part", "seconds"],
  ...all("li", figure).map((li) => [li.querySelector(".what").textContent, li.dataset.seconds]),
];

async function rowsOf(block) {
  if (block.shownRows) return block.shownRows();
  if (block.classList.contains("plot")) return plotRows(block);
  if (block.classList.contains("spent")) return spentRows(block);
  return tableRows(block);
}

/** Return the text of a cell. Spreadsheets would evaluate some texts as formulas: those begin with an apostrophe. */
function cellOf(value) {
  const text = String(value);
  const isFormula = /^[=+@\t\r]/.test(text) || (/^-./.test(text) && Number.isNaN(Number(text)));
  return isFormula ? `'${text}` : text;
}

const quoteIf = (special, text) => (special.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

const toCsv = (rows) =>
  rows.map((row) => `${row.map((value) => quoteIf(/[",\n\r]/, cellOf(value))).join(",")}\r\n`).join("");

/** Return tab-separated values, which spreadsheets paste as cells. */
const toTsv = (rows) => rows.map((row) => (
  row.map((value) => quoteIf(/"/, cellOf(value).replace(/[\t\r\n]+/g, " "))).join("\t"))).join("\n");

function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser may read the blob after the click returns.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function copyToClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without permission to write to the clipboard; execCommand needs none.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied;
  }
}

async function copy(button, block) {
  const text = button.dataset.do === "copy-next" ? button.parentElement.nextElementSibling.textContent
    : block.classList.contains("snippet") ? block.querySelector("pre").textContent : toTsv(tableRows(block));
  button.textContent = (await copyToClipboard(text)) ? "Copied" : "Copy failed";
  announce(button.textContent);
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

export function startDownloads() {
  document.addEventListener("click", async ({ target }) => {
    const button = target.closest("[data-do]");
    if (!button) return;
    const block = button.closest("[data-name]");
    if (button.dataset.do.startsWith("copy")) await copy(button, block);
    else if (button.dataset.do === "csv") {
      download(`${block.dataset.name}.csv`, new Blob([toCsv(await rowsOf(block))], { type: "text/csv" }));
    } else download(`${block.dataset.name}.${button.dataset.do}`, await pictureOf(block, button.dataset.do));
  });
}
