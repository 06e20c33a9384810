// The flame graph: functions below their callers on a canvas, as wide as their time. Each
// interaction weighs the tree anew: one pass over the samples, one over the nodes.
import { drawLegend, svgCanvas } from "../shared/svg.js";
import { unpackJson } from "../shared/unpack.js";
import { showBreadcrumbs } from "./breadcrumbs.js";
import { readColors, shadesOf } from "./colors.js";
import { attachControls } from "./controls.js";
import { AMBIGUOUS, decodeFlame } from "./data.js";
import { HINT, describe, summarize } from "./describe.js";
import { ROW_PX, drawGraph, graphHeight } from "./draw_graph.js";
import { drawStrip } from "./draw_strip.js";
import { attachInput } from "./input.js";
import { boxWithPath, layOut, pathOf } from "./layout.js";
import { matchedTime, search } from "./search.js";
import { State } from "./state.js";
import { attachStripInput } from "./strip_input.js";
import { ownCodeTree, sampledTree } from "./tree.js";
import { newWeights, weigh } from "./weights.js";

class FlameGraph {
  #trees = {};

  constructor(elements, raw) {
    this.elements = elements;
    this.data = decodeFlame(raw);
    this.state = new State(this.data);
    this.weights = newWeights(this.data);
    this.shades = shadesOf(this.data);
    this.colors = readColors();
    this.boxes = [];
  }

  get tree() {
    if (this.state.fold) return (this.#trees.own ??= ownCodeTree(this.data));
    return (this.#trees.sampled ??= sampledTree(this.data));
  }

  get width() { return Math.max(this.elements.content.clientWidth, 200); }

  drawGraph() { drawGraph(this); }

  draw() {
    drawGraph(this);
    drawStrip(this);
  }

  layOut() { this.boxes = layOut(this); }

  /** Show what is chosen, in new colors or of a new size. */
  restyle() {
    this.layOut();
    this.draw();
  }

  render() {
    this.#countMatches();
    this.restyle();
    showBreadcrumbs(this);
    this.elements.shown.textContent = summarize(this);
    const box = this.state.cursor && boxWithPath(this.boxes, this.state.cursor);
    if (!box) this.state.cursor = null;
    this.elements.detail.textContent = box ? this.#details(box) : HINT;
    this.elements.tooltip.hidden = true;
  }

  /** Weigh the tree and show it. */
  update() {
    this.elements.strip.parentElement.hidden = this.state.isYappi;
    weigh(this.data, this.state, this.tree, this.weights);
    this.render();
  }

  /** Show another tree from its top. */
  reset() {
    this.state.focus = [];
    this.state.cursor = null;
    this.elements.scroller.scrollTop = 0;
    this.update();
  }

  /** Search for the text of the search field. Only colors change: every box keeps its place. */
  search() {
    this.readSearch();
    this.#countMatches();
    this.drawGraph();
    this.elements.shown.textContent = summarize(this);
  }

  readSearch() {
    const { input } = this.elements;
    this.searched = search(this.data, input.value.trim(), this.state.regex);
    if (this.searched.isInvalid) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  }

  get matches() { return this.searched.matches; }

  #countMatches() {
    this.matched = this.matches && matchedTime(this.matches, this.tree, this.weights.functionTotal);
  }

  zoom(path) {
    if (this.state.sandwich) { this.#zoomSandwich(path); return; }
    this.state.focus = [...path];
    this.render();
    // Scroll to the focus and its caller.
    const top = Math.max(0, (this.state.focus.length - 2) * ROW_PX);
    if (this.elements.scroller.scrollTop !== top) {
      this.elements.scroller.scrollTop = top;
      this.drawGraph();
    }
  }

  // The path is that of a caller or of a callee of the function in the middle.
  #zoomSandwich(path) {
    if (path.length) this.state.center = path.at(-1) < 0 ? ~path.at(-1) : path.at(-1);
    this.state.cursor = null;
    this.render();
    this.#showMiddle();
  }

  /** Show the callers and callees of the function at the cursor, of the zoomed one, or of that with the most self time. */
  toggleSandwich() {
    const { state, weights: { functionSelf } } = this;
    if (state.sandwich) {
      const heaviest = functionSelf.reduce((best, seconds, frame) => (
        this.data.kinds[frame] < AMBIGUOUS && seconds > functionSelf[best] ? frame : best), 0);
      state.center = (state.cursor ?? state.focus).at(-1) ?? heaviest;
    }
    state.cursor = null;
    this.elements.scroller.scrollTop = 0;
    this.update();
    this.#showMiddle();
  }

  #showMiddle() {
    const row = this.boxes.findIndex(([box]) => box.depth === 0);
    const { scroller } = this.elements;
    if (row >= 0) scroller.scrollTop = (row + 1) * ROW_PX - scroller.clientHeight / 2;
    this.drawGraph();
  }

  /** Select a range of time buckets; it contains one at least. */
  selectRange(start, stop) {
    const low = Math.max(0, Math.min(start, this.data.bucketCount - 1));
    const high = Math.min(this.data.bucketCount, Math.max(stop, low + 1));
    if (low === this.state.start && high === this.state.stop) return;
    this.state.start = low;
    this.state.stop = high;
    this.update();
  }

  /** Move the cursor to a box, if there is one, and bring it into view. */
  moveCursor(box) {
    if (!box) return;
    const { scroller, detail } = this.elements;
    this.state.cursor = pathOf(box);
    const y = box.row * ROW_PX;
    if (y < scroller.scrollTop) scroller.scrollTop = y;
    if (y + ROW_PX > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = y + 2 * ROW_PX - scroller.clientHeight;
    detail.textContent = this.#details(box);
    this.drawGraph();
  }

  #details(box) { return `${this.data.fullLabels[box.frame]}: ${describe(this, box).join("; ")}.`; }

  /** Return the whole graph as SVG: width, height and body. */
  picture() {
    const { width, boxes, elements: { figure } } = this;
    const height = graphHeight(boxes);
    const canvas = svgCanvas();
    const elements = { canvas, content: { style: {} }, scroller: { clientHeight: height, scrollTop: 0 } };
    drawGraph(Object.create(this, { elements: { value: elements }, width: { value: width } }));
    const colors = { ink: this.colors.outline, font: `12px ${this.colors.sans}` };
    const legendHeight = drawLegend(canvas.context, figure, height, width, colors);
    return { width, height: height + legendHeight, body: canvas.context.parts.join("") };
  }

  /** Return every box that is drawn, as rows of a CSV file. */
  shownRows() {
    const { names, files, labels, inSeconds } = this.data;
    const header = ["stack", "function", "file",
      ...(inSeconds ? ["total_seconds", "self_seconds"] : ["samples", "self_samples"])];
    const stackOf = (box) => (!this.state.sandwich ? pathOf(box)
      : box.step < 0 ? [...pathOf(box).map((frame) => ~frame).reverse(), this.state.center] : [this.state.center, ...pathOf(box)]);
    const rows = this.boxes.flat().filter((box) => box.depth || this.state.sandwich).map((box) => [
      stackOf(box).map((frame) => labels[frame]).join(";"), names[box.frame], files[box.frame], box.total, box.self]);
    // The inverted graph divides self time: boxes have none of their own.
    return [header, ...rows].map((row) => (this.state.inverted || this.state.sandwich ? row.slice(0, -1) : row));
  }
}

/** Draw the flame graph of the page. */
export async function drawFlame(figure) {
  const part = (selector) => figure.querySelector(selector);
  const elements = {
    figure,
    strip: part(".flame-strip canvas"),
    canvas: part(".flame-content canvas"),
    scroller: part(".flame-scroll"),
    content: part(".flame-content"),
    crumbs: part(".flame-crumbs ol"),
    tooltip: part(".flame-tip"),
    detail: part(".flame-detail"),
    shown: part(".flame-shown"),
    input: part("input[type=search]"),
    prefixSelect: part('[data-choose="prefix"]'),
  };
  let raw;
  try {
    raw = await unpackJson(part("script"));
  } catch (error) {
    elements.shown.textContent = error.message;
    return;
  }
  part("script").remove();
  const flame = new FlameGraph(elements, raw);
  attachControls(flame);
  flame.readSearch();
  flame.update();
  attachInput(flame);
  attachStripInput(flame);
  figure.shownRows = () => flame.shownRows();
  figure.picture = () => flame.picture();
  document.addEventListener("roast-theme", () => { flame.colors = readColors(); flame.draw(); });
  new ResizeObserver(() => flame.restyle()).observe(elements.scroller);
  figure.dataset.state = "drawn";
}
