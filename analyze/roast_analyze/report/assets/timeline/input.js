import { fillTooltip, placeTooltip } from "../shared/tooltip.js";
import { describe, describeOverview } from "./describe.js";
import { hitTest } from "./hit.js";

const DRAG_PX = 4; // a pointer that moves less is a click

/** Connect pointer, wheel and keyboard on both canvases to a timeline. */
export function attachInput(timeline) {
  const { elements: { top, canvas, scroller, tooltip } } = timeline;
  for (const target of [top, canvas]) {
    attachPointer(timeline, target);
    attachWheel(timeline, target);
    attachKeyboard(timeline, target);
  }
  scroller.addEventListener("scroll", () => { tooltip.hidden = true; timeline.redraw(); }, { passive: true });
}

function positionOf({ layout }, event, target) {
  const box = target.getBoundingClientRect();
  const scale = box.width / layout.width || 1;
  return { x: (event.clientX - box.left) / scale, y: (event.clientY - box.top) / scale };
}

function attachPointer(timeline, target) {
  const { data, state, layout, elements: { canvas, figure, tooltip } } = timeline;
  let drag = null;

  function hover(event) {
    const position = positionOf(timeline, event, target);
    const hit = target === canvas ? hitTest(timeline, position) : null;
    target.style.cursor = hit?.bar !== undefined || hit?.mark !== undefined ? "pointer" : "crosshair";
    const found = position.x < layout.gutter ? null
      : target === canvas ? describe(timeline, hit)
        : describeOverview(timeline, layout.secondsAt(position.x), position.y);
    tooltip.hidden = !found;
    if (!found) return;
    fillTooltip(tooltip, found.title, found.lines);
    placeTooltip(tooltip, figure, event);
  }

  target.addEventListener("pointerdown", (event) => {
    const { x } = positionOf(timeline, event, target);
    if (event.button !== 0 || x < layout.gutter - 4) return;
    drag = { x, seconds: layout.secondsAt(x), start: state.start, stop: state.stop, pans: event.shiftKey, moved: false };
    target.setPointerCapture?.(event.pointerId);
  });
  target.addEventListener("pointermove", (event) => {
    timeline.pointed = layout.secondsAt(positionOf(timeline, event, target).x);
    if (!drag) { hover(event); return; }
    const { x } = positionOf(timeline, event, target);
    drag.moved ||= Math.abs(x - drag.x) > DRAG_PX;
    if (!drag.moved) return;
    tooltip.hidden = true;
    if (drag.pans) {
      const shift = ((drag.x - x) / layout.plotWidth) * (drag.stop - drag.start);
      timeline.showRange(drag.start + shift, drag.stop + shift);
    } else {
      state.brush = [drag.seconds, Math.max(0, Math.min(layout.secondsAt(x), data.seconds))];
      timeline.redraw();
    }
  });
  target.addEventListener("pointerup", (event) => {
    const { brush } = state;
    const isClick = drag && !drag.moved;
    drag = state.brush = null;
    if (brush) timeline.showRange(Math.min(...brush), Math.max(...brush));
    else if (isClick && target === canvas) timeline.select(hitTest(timeline, positionOf(timeline, event, target)));
  });
  target.addEventListener("pointercancel", () => { drag = state.brush = null; timeline.redraw(); });
  target.addEventListener("pointerleave", () => { tooltip.hidden = true; timeline.pointed = undefined; });
  target.addEventListener("dblclick", () => timeline.showAll());
}

function attachWheel(timeline, target) {
  const { state, layout } = timeline;
  target.addEventListener("wheel", (event) => {
    const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const factor = Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300)));
      timeline.zoom(factor, layout.secondsAt(positionOf(timeline, event, target).x));
    } else if (isSideways && state.isZoomed) {
      event.preventDefault();
      const shift = ((event.deltaX || event.deltaY) / layout.plotWidth) * (state.stop - state.start);
      timeline.showRange(state.start + shift, state.stop + shift);
    }
  }, { passive: false });
}

function attachKeyboard(timeline, target) {
  const { state, elements: { scroller } } = timeline;
  const pan = (share) => {
    const shift = share * (state.stop - state.start);
    timeline.showRange(state.start + shift, state.stop + shift);
  };
  const actions = {
    ArrowLeft: () => pan(-0.2),
    ArrowRight: () => pan(0.2),
    ArrowUp: () => { scroller.scrollTop -= 60; },
    ArrowDown: () => { scroller.scrollTop += 60; },
    a: () => pan(-0.2),
    d: () => pan(0.2),
    w: () => timeline.zoom(0.5, timeline.pointed),
    s: () => timeline.zoom(2, timeline.pointed),
    "+": () => timeline.zoom(0.5),
    "=": () => timeline.zoom(0.5), // the key of + on many keyboards, without Shift
    "-": () => timeline.zoom(2),
    0: () => timeline.showAll(),
    Home: () => timeline.showAll(),
    n: () => selectFailure(timeline, 1),
    p: () => selectFailure(timeline, -1),
    Escape: () => { timeline.select(null); timeline.showAll(); },
  };
  target.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  });
  // Below the pointer, letters work without the focus.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.activeElement !== document.body) return;
    if (target.matches(":hover") && /^[wasd]$/.test(event.key)) actions[event.key]();
  });
}

/** Select the next (1) or previous (-1) failed attempt in order of time, and bring it into view. */
function selectFailure(timeline, step) {
  const { data, state } = timeline;
  const { marks } = data;
  const isShown = (i) => state.isMarkShown(i) && state.rows.includes(data.rowOfLane[marks.lanes[i]]);
  let i = (state.selected?.mark ?? (step > 0 ? -1 : marks.count)) + step;
  while (i >= 0 && i < marks.count && !isShown(i)) i += step;
  if (i < 0 || i >= marks.count) return;
  const time = marks.starts[i];
  const half = (state.stop - state.start) / 2;
  if (time < state.start || time > state.stop) timeline.showRange(time - half, time + half);
  timeline.reveal(marks.lanes[i]);
  timeline.select({ mark: i });
}
