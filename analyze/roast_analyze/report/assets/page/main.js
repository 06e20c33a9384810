// What every page does: theme, figures, tables, downloads. A page loads nothing, and text of a
// trace is only ever set as text: there is no innerHTML.
import { all, nextFrame } from "./dom.js";
import { startDownloads } from "./downloads.js";
import { startNavigation } from "./navigation.js";
import { drawPlot, loadPlotly, restylePlots } from "./plots.js";
import { startPrinting } from "./printing.js";
import { startSqlBoxes } from "./sql_boxes.js";
import { hasFewRows, layOutTables, paintVisibleOnly, startTables } from "./tables.js";
import { startTheme } from "./theme.js";

/**
 * Start the page.
 *
 * @param {Array<() => Promise>} canvasFigures Draw the figures that need no plotly.
 */
export function startPage(canvasFigures) {
  startTheme();
  document.addEventListener("roast-theme", restylePlots);
  startTables();
  startSqlBoxes();
  startDownloads();
  startNavigation();
  startPrinting();
  drawAll(canvasFigures);
}

async function drawAll(canvasFigures) {
  // These come first: plotly takes longer to start than they take to be drawn.
  for (const drawFigure of canvasFigures) {
    // A figure that fails is reported to the console, and leaves the others alone.
    try { await drawFigure(); } catch (error) { reportError(error); }
    await nextFrame();
  }
  const fewRows = hasFewRows();
  if (fewRows) await layOutTables();
  const plots = all("figure.plot");
  try {
    if (plots.length) await loadPlotly();
  } catch (error) {
    for (const figure of plots) figure.querySelector(".waiting").textContent = error.message;
    document.documentElement.dataset.state = "undrawn";
    return;
  }
  for (const figure of plots) {
    try {
      await drawPlot(figure);
    } catch (error) {
      figure.querySelector(".canvas").textContent = error.message;
    }
    await nextFrame();
  }
  document.documentElement.dataset.state = "drawn";
  if (fewRows) return;
  await layOutTables();
  paintVisibleOnly();
}
