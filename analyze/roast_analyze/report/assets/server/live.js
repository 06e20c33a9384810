// The progress of a run that is being recorded.
import { startTheme } from "../page/theme.js";
import { renew } from "./answers.js";
import { element, progressBar } from "./elements.js";

const id = document.getElementById("live").dataset.run;

function table({ name, headings, rows, more }) {
  const scroll = element("div", "", "scroll");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", `Progress by ${name}`);
  const made = element("table");
  const head = made.createTHead().insertRow();
  const [done, total, ...others] = headings;
  for (const [text, className] of [[name, ""], [done, "n"], [total, "n"], ["share", ""], ...others.map((it) => [it, "n"])]) {
    const heading = element("th", text, className);
    heading.scope = "col";
    head.append(heading);
  }
  const body = made.createTBody();
  for (const { cells: [key, ...numbers], share } of rows) {
    const row = body.insertRow();
    const first = element("td");
    first.append(element("bdi", key));
    first.title = key;
    const bar = element("td");
    bar.append(progressBar(share));
    const cells = numbers.map((text) => element("td", text, "n"));
    row.append(first, ...cells.slice(0, 2), bar, ...cells.slice(2));
  }
  if (more) body.insertRow().append(element("td", `and ${more.toLocaleString("en")} more`));
  scroll.append(made);
  return scroll;
}

function use(answer) {
  const [[name, text], ...facts] = answer.facts ?? [[answer.is_live ? "Running" : "Not live", ""]];
  document.getElementById("place").textContent = answer.place ?? "";
  const state = document.getElementById("state");
  state.textContent = `${name}: ${text}`;
  document.getElementById("facts").replaceChildren(...facts.flatMap(([fact, value]) => {
    const shown = element("dd");
    shown.append(element("bdi", value));
    return [element("dt", fact), shown];
  }));
  document.getElementById("amounts").replaceChildren(...(answer.tables ?? []).map(table));
  document.getElementById("failures").replaceChildren(
    ...(answer.failures ?? []).map((failure) => element("li", `failed after ${failure}`)));
  document.documentElement.dataset.state = "drawn";
  if (answer.is_live) return true;
  if (name === "Ended") state.textContent += ". The recording has ended.";
  document.getElementById("report").textContent = "Report of the run";
  return false;
}

startTheme();
renew(() => `live-${id}.json`, use);
