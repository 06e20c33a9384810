// Boxes with the SQL of a table or figure. An open box covers what is below it, so it closes when
// the pointer or the focus goes elsewhere.
import { all } from "./dom.js";

const openBoxes = () => all(".tools details[open]");

export function startSqlBoxes() {
  const closeOthers = ({ target }) => {
    for (const box of openBoxes()) if (!box.contains(target)) box.open = false;
  };
  document.addEventListener("focusin", closeOthers);
  document.addEventListener("click", closeOthers);
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    for (const box of openBoxes()) { box.open = false; box.querySelector("summary").focus(); }
  });
}
