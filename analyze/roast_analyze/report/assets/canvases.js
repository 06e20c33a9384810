"use strict";
// What the figures that are drawn on a canvas share: words, sizes, and the box at the pointer.

const digits = (value) => Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });

function duration(seconds) {
  if (seconds < 0) return `−${duration(-seconds)}`;
  if (seconds === 0) return "0 s";
  if (seconds < 1e-3) return `${digits(seconds * 1e6)} µs`;
  if (seconds < 0.9995) return `${digits(seconds * 1e3)} ms`;
  if (seconds < 119.5) return `${digits(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600).toLocaleString("en")} h ${Math.floor(whole / 60) % 60} min`;
}

// Empty, of that size in CSS pixels, and as sharp as the screen.
function sizedContext(canvas, widthPx, heightPx) {
  const ratio = Math.min(devicePixelRatio || 1, 3);
  const [w, h] = [Math.round(widthPx * ratio), Math.round(heightPx * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  canvas.style.height = `${heightPx}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, widthPx, heightPx);
  return context;
}

// Fill the box of a figure with a name and lines about it; text of a trace stays text.
function fillTip(tip, name, lines) {
  const elements = [["b", name], ...lines.filter(Boolean).map((line) => ["span", line])];
  tip.replaceChildren(...elements.map(([tag, text]) => {
    const element = document.createElement(tag);
    element.textContent = text;
    return element;
  }));
}

// Beside the pointer, within the figure, and above it where there is no room below.
function placeTip(tip, figure, { clientX, clientY }) {
  const around = figure.getBoundingClientRect();
  const [x, y] = [clientX - around.left + 14, clientY - around.top + 16];
  tip.style.left = `${Math.max(0, Math.min(x, around.width - tip.offsetWidth - 4))}px`;
  tip.style.top = `${clientY + 24 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 30 : y}px`;
}
