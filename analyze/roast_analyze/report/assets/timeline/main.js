// The timeline: workers × time on two canvases with one time axis. This is the first script of a
// report: it runs while the browser still reads the rest of the page.
import "../shared/scripted.js";
import { drawLegend, svgCanvas } from "../shared/svg.js";
import { unpackJson } from "../shared/unpack.js";
import { readColors } from "./colors.js";
import { attachControls } from "./controls.js";
import { decodeLanes, decodeTimeline } from "./data.js";
import { HINT, describe, summarize } from "./describe.js";
import { drawLanes } from "./draw_lanes.js";
import { drawOverview } from "./draw_overview.js";
import { attachInput } from "./input.js";
import { Layout } from "./layout.js";
import { readSelection, readView, writeView } from "./permalink.js";
import { shownRows } from "./rows.js";
import { State } from "./state.js";

class Timeline {
  #frame = 0;

  constructor(elements, raw) {
    this.elements = elements;
    this.data = decodeTimeline(raw);
    this.state = new State(this.data, elements.figure.dataset.color);
    this.firstView = { ...this.state };
    this.layout = new Layout(this.data, this.state, elements);
    this.colors = readColors();
  }

  draw() {
    drawOverview(this);
    drawLanes(this);
  }

  /** Draw in the next frame, however often that is asked for before it. */
  redraw() {
    this.#frame ||= requestAnimationFrame(() => { this.#frame = 0; this.draw(); });
  }

  /** Apply the filters to the data. */
  applyFilters() {
    this.state.applyFilters();
    this.layout.update(this.colors.font);
    this.elements.shown.textContent = summarize(this);
  }

  update() {
    this.applyFilters();
    this.redraw();
    this.elements.tooltip.hidden = true;
    writeView(this);
  }

  showRange(start, stop) {
    this.state.setRange(start, stop);
    this.#showZoom();
    this.elements.shown.textContent = summarize(this);
    this.elements.tooltip.hidden = true;
    this.redraw();
    writeView(this);
  }

  #showZoom() {
    for (const button of this.elements.zoomOutButtons) button.disabled = !this.state.isZoomed;
  }

  showAll() { this.showRange(0, this.data.seconds); }

  zoom(factor, center = (this.state.start + this.state.stop) / 2) {
    const { start, stop } = this.state;
    this.showRange(center - (center - start) * factor, center + (stop - center) * factor);
  }

  /** Keep the details of what was clicked, or of nothing, below the timeline. */
  select(hit) {
    this.state.selected = hit;
    const found = describe(this, hit);
    this.elements.detail.textContent = found ? `${found.title}: ${found.lines.join("; ")}.` : HINT;
    this.redraw();
    writeView(this);
  }

  /** Scroll to the row of a lane. */
  reveal(lane) {
    const { state, layout, elements: { scroller } } = this;
    const place = state.rows.indexOf(this.data.rowOfLane[lane]);
    const [top, bottom] = [layout.rowTops[place], layout.rowTops[place + 1]];
    if (top < scroller.scrollTop || bottom > scroller.scrollTop + layout.visibleHeight) scroller.scrollTop = top - 40;
  }

  /** Show the view of the address, if it has one. */
  followAddress() {
    if (!readView(this)) return;
    this.showControls();
    this.#showZoom();
    this.applyFilters();
    const selected = readSelection(this);
    this.select(selected);
    if (selected) this.reveal(selected.bar === undefined ? this.data.marks.lanes[selected.mark] : this.data.bars.lanes[selected.bar]);
    this.elements.figure.scrollIntoView();
  }

  /** Draw with a new size or new colors, at once: a resized canvas is empty. */
  restyle() {
    this.layout.update(this.colors.font);
    this.draw();
  }
}

/** Return the timeline with all its lanes as SVG: width, height and body. */
function pictureOf(timeline) {
  const { layout, colors, elements: { figure } } = timeline;
  const { width, topHeight, lanesHeight } = layout;
  const [top, canvas, { context: legend }] = [svgCanvas(), svgCanvas(), svgCanvas()];
  const whole = Object.create(layout, { visibleHeight: { value: lanesHeight }, scrollTop: { value: 0 } });
  const drawn = Object.create(timeline, {
    layout: { value: whole },
    elements: { value: { figure, top, canvas, content: { style: {} } } },
  });
  drawOverview(drawn);
  drawLanes(drawn);
  const height = topHeight + lanesHeight;
  const legendHeight = drawLegend(legend, figure, 0, width, colors);
  const body = [[top.context, 0], [canvas.context, topHeight], [legend, height]]
    .map(([{ parts }, y]) => `<g transform="translate(0 ${y})">${parts.join("")}</g>`).join("");
  return { width, height: height + legendHeight, body };
}

async function drawTimeline(figure) {
  const part = (selector) => figure.querySelector(selector);
  const elements = {
    figure,
    top: part(".timeline-top canvas"),
    canvas: part(".timeline-content canvas"),
    scroller: part(".timeline-scroll"),
    content: part(".timeline-content"),
    tooltip: part(".timeline-tip"),
    detail: part(".timeline-detail"),
    shown: part(".timeline-shown"),
    zoomOutButtons: figure.querySelectorAll('[data-zoom="all"], [data-zoom="out"]'),
  };
  let raw;
  try {
    raw = await unpackJson(part("script"));
  } catch (error) {
    elements.shown.textContent = error.message;
    return;
  }
  part("script").remove();
  const timeline = new Timeline(elements, raw);
  attachControls(timeline);
  readView(timeline);
  timeline.showControls();
  timeline.applyFilters();
  timeline.select(null);
  attachInput(timeline);
  drawOverview(timeline);
  part(".timeline-top").dataset.state = "drawn";

  figure.shownRows = () => shownRows(timeline);
  figure.picture = () => pictureOf(timeline);
  document.addEventListener("roast-theme", () => { timeline.colors = readColors(); timeline.restyle(); });
  new ResizeObserver(() => timeline.restyle()).observe(elements.scroller);

  const lanes = await elementParsed("timeline-lanes");
  decodeLanes(timeline.data, await unpackJson(lanes));
  lanes.remove();
  // Again, now with lanes: a browser that returns to a page may have restored a filter.
  timeline.applyFilters();
  timeline.followAddress();
  addEventListener("hashchange", () => timeline.followAddress());
  timeline.draw();
  figure.dataset.state = "drawn";
}

/** Return an element of <main> once the browser has parsed all of it. */
const elementParsed = (id) => new Promise((resolve) => {
  const observer = new MutationObserver(check);
  function check() {
    const element = document.getElementById(id);
    if (!element?.nextSibling && document.readyState === "loading") return;
    observer.disconnect();
    resolve(element);
  }
  observer.observe(document.querySelector("main"), { childList: true });
  check();
});

const figure = document.querySelector("figure.timeline");
// The page's second script waits for this promise before it starts plotly.
if (figure) figure.drawn = drawTimeline(figure);
