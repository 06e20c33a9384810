// Pointer and keyboard on the strip of samples over time: they select a time range.

const DRAG_PX = 3; // a pointer that moves less is a click

export function attachStripInput(flame) {
  const { data, state, elements: { strip } } = flame;
  const last = data.bucketCount - 1;
  const showAll = () => flame.selectRange(0, data.bucketCount);
  const bucketAt = ({ clientX }) => {
    const box = strip.getBoundingClientRect();
    return Math.max(0, Math.min(Math.floor(((clientX - box.left) / box.width) * data.bucketCount), last));
  };
  let drag = null;
  strip.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    drag = { bucket: bucketAt(event), x: event.clientX, moved: false };
    strip.setPointerCapture?.(event.pointerId);
  });
  strip.addEventListener("pointermove", (event) => {
    if (!drag) return;
    drag.moved ||= Math.abs(event.clientX - drag.x) > DRAG_PX;
    const bucket = bucketAt(event);
    if (drag.moved) flame.selectRange(Math.min(bucket, drag.bucket), Math.max(bucket, drag.bucket) + 1);
  });
  for (const end of ["pointerup", "pointercancel"]) strip.addEventListener(end, () => { drag = null; });
  strip.addEventListener("dblclick", showAll);

  strip.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { start, stop } = state;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") showAll();
    else if (!step) return;
    else if (!state.isBrushed) flame.selectRange(step > 0 ? 0 : last, step > 0 ? 1 : last + 1);
    else if (event.shiftKey) flame.selectRange(start, Math.max(stop + step, start + 1));
    else if (start + step >= 0 && stop + step <= data.bucketCount) flame.selectRange(start + step, stop + step);
    event.preventDefault();
  });
}
