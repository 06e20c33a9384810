/**
 * Size a canvas, clear it and return its context, whose unit is the CSS pixel.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {number} widthPx
 * @param {number} heightPx
 */
export function sizedContext(canvas, widthPx, heightPx) {
  const ratio = Math.min(devicePixelRatio || 1, 3);
  const [w, h] = [Math.round(widthPx * ratio), Math.round(heightPx * ratio)];
  // Setting a size, even the same one, reallocates the bitmap.
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  canvas.style.height = `${heightPx}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, widthPx, heightPx);
  return context;
}
