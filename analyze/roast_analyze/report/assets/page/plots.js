// Figures that plotly draws. They are packed: an unpacked one would be read twice by the browser.
import { unpackJson, unpackText } from "../shared/unpack.js";
import { all, nextFrame } from "./dom.js";
import { cssVariable } from "./theme.js";

const CONFIG = {
  responsive: true,
  displaylogo: false,
  typesetMath: false,
  // Plotly's default set has a button that sends the chart to a server.
  modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
};
const NARROW_PX = 600;
const PRINT_WIDTH_PX = 700;

const drawn = [];
let size = {};

let plotly; // a promise, once it is needed

async function loadPlotly() {
  const library = document.getElementById("plotly-gzip-base64");
  const script = document.createElement("script");
  script.textContent = await unpackText(library);
  document.head.append(script);
  library.remove();
  if (typeof Plotly === "undefined") throw new Error("plotly.js, which draws the figures, did not start in this browser.");
}

const readFigure = (figure) => unpackJson(figure.querySelector("script"));

/** Draw figures one by one; return false if plotly does not start. */
export async function drawPlots(figures) {
  try {
    if (figures.length) await (plotly ??= loadPlotly());
  } catch (error) {
    for (const figure of figures) figure.querySelector(".waiting").textContent = error.message;
    return false;
  }
  for (const figure of figures) {
    try {
      await drawPlot(figure);
    } catch (error) {
      figure.querySelector(".canvas").textContent = error.message;
    }
    await nextFrame();
  }
  return true;
}

async function drawPlot(figure) {
  const canvas = figure.querySelector(".canvas");
  const { data, layout } = await readFigure(figure);
  assign(layout, themeOf(layout));
  if (canvas.clientWidth < NARROW_PX) fitNarrow(canvas, data, layout);
  canvas.textContent = "";
  await Plotly.newPlot(canvas, data, layout, CONFIG);
  // The label of the canvas describes the drawing; only its buttons remain for screen readers.
  for (const drawing of all(".main-svg", canvas)) drawing.setAttribute("aria-hidden", "true");
  drawn.push(canvas);
  figure.dataset.state = "drawn";
}

/** Give all plots the colors of the current theme. */
export function restylePlots() {
  for (const canvas of drawn) Plotly.relayout(canvas, { ...themeOf(canvas.layout), ...size });
}

/** Set the width that plots have from the next change of the theme on: that of paper or of the page. */
export function fitToPaper(isPaper) {
  size = isPaper ? { width: PRINT_WIDTH_PX, autosize: false } : { width: null, autosize: true };
}

function themeOf(layout) {
  const [ink, soft, line, raised] = ["--ink", "--soft", "--line", "--raised"].map(cssVariable);
  const change = {
    "font.color": ink,
    "font.family": cssVariable("--sans"),
    "font.size": 12,
    "hoverlabel.bgcolor": raised,
    "hoverlabel.bordercolor": soft,
    "hoverlabel.font.color": ink,
    "hoverlabel.align": "left",
    "modebar.bgcolor": "rgba(0,0,0,0)",
    "modebar.color": soft,
    "modebar.activecolor": cssVariable("--accent"),
  };
  for (const axis of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) {
    change[`${axis}.gridcolor`] = line;
    change[`${axis}.linecolor`] = line;
    change[`${axis}.tickfont.color`] = soft;
    change[`${axis}.title.font.color`] = soft;
  }
  return change;
}

function assign(target, changes) {
  for (const [path, value] of Object.entries(changes)) {
    const steps = path.split(".");
    const last = steps.pop();
    steps.reduce((node, step) => (node[step] ??= {}), target)[last] = value;
  }
}

/** Make room for the many lines of a legend on a narrow screen, and shorten the labels of rows. */
function fitNarrow(canvas, data, layout) {
  const entries = data.filter((trace) => trace.name && trace.showlegend !== false).length;
  layout.height += 9 * entries;
  canvas.style.height = `${layout.height}px`;
  const axis = layout.yaxis;
  if (!axis?.ticktext) return;
  axis.tickfont = { ...axis.tickfont, size: 10 };
  axis.ticktext = axis.ticktext.map((text) => {
    const plain = unescapeLabel(text);
    return plain.length > 12 ? escapeLabel(`${plain.slice(0, 11)}…`) : text;
  });
}

// Plotly reads labels as HTML, so roast_analyze.figures escapes them.
const unescapeLabel = (label) =>
  label.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
const escapeLabel = (text) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** Return the points of a figure as rows of a CSV file; `meta.columns` of a trace names its attributes. */
export async function plotRows(figure) {
  const { data, layout } = await readFigure(figure);
  const records = data.filter((trace) => trace.meta?.columns)
    .flatMap((trace) => (trace.z ? heatmapRecords(trace, layout) : pointRecords(trace)));
  const header = [...new Set(records.flatMap(Object.keys))];
  return [header, ...records.map((record) => header.map((name) => record[name] ?? ""))];
}

function pointRecords(trace) {
  const plain = (value) => (typeof value === "string" ? unescapeLabel(value) : value);
  return Array.from(trace.x ?? trace.y, (_, i) => {
    const record = { series: unescapeLabel(trace.name ?? "") };
    for (const [attribute, name] of Object.entries(trace.meta.columns)) {
      if (attribute === "customdata") name.forEach((column, j) => { record[column] = plain(trace.customdata[i][j]); });
      else record[name] = trace[attribute][i];
    }
    return record;
  });
}

// Rows and columns of a heat map are numbered, and named by the labels of the axes.
function heatmapRecords(trace, { xaxis, yaxis }) {
  const { x, y, z } = trace.meta.columns;
  const labelAt = ({ tickvals, ticktext }, place) => (ticktext ? unescapeLabel(ticktext[tickvals.indexOf(place)]) : place);
  return trace.z.flatMap((values, i) => values.flatMap((value, j) => (value === null ? [] : [{
    series: unescapeLabel(trace.name), [y]: labelAt(yaxis, trace.y[i]), [x]: labelAt(xaxis, trace.x[j]), [z]: value,
  }])));
}
