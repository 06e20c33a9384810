// What every page does: theme, figures, tables, downloads. A page loads nothing, and text of a
// trace is only ever set as text: there is no innerHTML.
import { all, nextFrame } from "./dom.js";
import { startDownloads } from "./downloads.js";
import { isFolded, onceUnfolded, startFolding } from "./folding.js";
import { startNavigation } from "./navigation.js";
import { drawPlots, restylePlots } from "./plots.js";
import { startPrinting } from "./printing.js";
import { startSqlBoxes } from "./sql_boxes.js";
import { hasFewRows, layOutTables, paintVisibleOnly, startTables } from "./tables.js";
import { startTheme } from "./theme.js";

/**
 * Start the page.
 *
 * @param {Object<string, (figure: Element) => Promise>} canvasFigures By selector, what draws a figure that needs no plotly.
 */
export function startPage(canvasFigures) {
  startTheme();
  document.addEventListener("roast-theme", restylePlots);
  startTables();
  startSqlBoxes();
  startDownloads();
  startFolding();
  startNavigation();
  startPrinting();
  drawAll(canvasFigures);
}

async function drawAll(canvasFigures) {
  // These come first: plotly takes longer to start than they take to be drawn.
  for (const [selector, drawFigure] of Object.entries(canvasFigures)) {
    const figure = document.querySelector(selector);
    if (!figure) continue;
    // A figure that fails is reported to the console, and leaves the others alone.
    const draw = async () => { try { await drawFigure(figure); } catch (error) { reportError(error); } };
    if (isFolded(figure)) { onceUnfolded(figure, draw); continue; }
    await draw();
    await nextFrame();
  }
  const fewRows = hasFewRows();
  if (fewRows) await layOutTables();
  const folded = all("figure.plot").filter(isFolded);
  for (const figure of folded) onceUnfolded(figure, () => drawPlots([figure]));
  const isDrawn = await drawPlots(all("figure.plot").filter((figure) => !folded.includes(figure)));
  document.documentElement.dataset.state = isDrawn ? "drawn" : "undrawn";
  if (fewRows || !isDrawn) return;
  await layOutTables();
  paintVisibleOnly();
}
