// Boxes with the SQL of a table or figure. An open box covers what is below it, so it closes when
// the pointer or the focus goes elsewhere.
import { all } from "./dom.js";

const openBoxes = () => all(".tools details[open]");

/** Add buttons that copy the texts of a box when it is opened: in the page, they would take 1 % of its size. */
function addCopyButtons(box) {
  for (const text of all("pre", box)) {
    const above = text.previousElementSibling;
    if (above.querySelector("button")) continue;
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: "Copy" });
    button.dataset.do = "copy-next";
    button.setAttribute("aria-label", `Copy: ${above.textContent.replace(/:\s*$/, "")}`);
    above.append(button);
  }
}

export function startSqlBoxes() {
  document.addEventListener("toggle", ({ target }) => {
    if (target.open && target.matches(".tools details")) addCopyButtons(target);
  }, true);
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
