// Pointer and keyboard on the flame graph itself.
import { fillTooltip, placeTooltip } from "../shared/tooltip.js";
import { describe } from "./describe.js";
import { ROW_PX, graphHeight } from "./draw_graph.js";
import { boxWithPath, pathOf } from "./layout.js";

export function attachInput(flame) {
  const { elements: { canvas, scroller, tooltip } } = flame;
  attachPointer(flame);
  canvas.addEventListener("keydown", (event) => pressKey(flame, event));
  scroller.addEventListener("scroll", () => { tooltip.hidden = true; flame.drawGraph(); }, { passive: true });
}

/** Return the box under the pointer, or null. */
function hitTest({ boxes, width, elements: { canvas, scroller } }, { clientX, clientY }) {
  const area = canvas.getBoundingClientRect();
  const top = Math.min(scroller.scrollTop, Math.max(graphHeight(boxes) - area.height, 0));
  const row = boxes[Math.floor((clientY - area.top + top) / ROW_PX)];
  if (!row) return null;
  const x = ((clientX - area.left) / area.width) * width;
  let [low, high] = [0, row.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row[middle].x <= x) low = middle + 1;
    else high = middle;
  }
  const box = row[low - 1];
  return box && x <= box.x + Math.max(box.w, 1) ? box : null;
}

function attachPointer(flame) {
  const { data, state, elements: { canvas, figure, tooltip } } = flame;
  let hovered = null;
  canvas.addEventListener("pointermove", (event) => {
    const box = hitTest(flame, event);
    tooltip.hidden = !box;
    canvas.style.cursor = box ? "pointer" : "default";
    if (box && box !== hovered) fillTooltip(tooltip, data.names[box.frame], [data.files[box.frame], ...describe(flame, box)]);
    hovered = box;
    if (box) placeTooltip(tooltip, figure, event);
  });
  canvas.addEventListener("pointerleave", () => { tooltip.hidden = true; hovered = null; });
  canvas.addEventListener("click", (event) => {
    const box = hitTest(flame, event);
    if (!box) return;
    state.cursor = pathOf(box);
    flame.zoom(state.cursor);
  });
}

function pressKey(flame, event) {
  const { boxes, state } = flame;
  if (event.ctrlKey || event.metaKey || event.altKey || !boxes.length) return;
  const box = (state.cursor && boxWithPath(boxes, state.cursor)) ?? boxWithPath(boxes, state.sandwich ? [] : state.focus) ?? boxes[0][0];
  const row = boxes[box.row];
  // The widest box that a box leads to in the next or previous row. In a sandwich, callers are above what they call.
  const neighbor = (step) => (boxes[box.row + step]?.includes(box.above) ? box.above
    : (boxes[box.row + step] ?? []).filter(({ above }) => above === box)
      .reduce((widest, one) => (widest && widest.w >= one.w ? widest : one), null));
  const zoomOut = () => {
    if (state.sandwich) return;
    state.cursor = state.focus.slice(0, -1);
    flame.zoom(state.cursor);
  };
  const zoomIn = () => flame.zoom(pathOf(box));
  const actions = {
    // The first key press only shows where the cursor is.
    ArrowDown: () => flame.moveCursor(state.cursor ? neighbor(1) : box),
    ArrowUp: () => flame.moveCursor(neighbor(-1) ?? box),
    ArrowRight: () => flame.moveCursor(row[row.indexOf(box) + 1]),
    ArrowLeft: () => flame.moveCursor(row[row.indexOf(box) - 1]),
    Home: () => flame.moveCursor(boxes[0][0]),
    Enter: zoomIn,
    " ": zoomIn,
    Escape: zoomOut,
    Backspace: zoomOut,
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}
