// Printing: in light colors, plots as wide as the paper, and tables complete.
import { fitToPaper } from "./plots.js";
import { finishChanges } from "./tables.js";

export function startPrinting() {
  const root = document.documentElement;
  let themeBefore;
  addEventListener("beforeprint", () => {
    finishChanges();
    themeBefore = root.dataset.theme;
    root.dataset.theme = "light";
    fitToPaper(true);
    document.dispatchEvent(new Event("roast-theme"));
  });
  addEventListener("afterprint", () => {
    if (themeBefore) root.dataset.theme = themeBefore;
    else delete root.dataset.theme;
    fitToPaper(false);
    document.dispatchEvent(new Event("roast-theme"));
  });
}
