/**
 * Fill the tooltip of a figure with a title and lines.
 *
 * Text of a trace is only ever set as textContent, so that it cannot become markup.
 */
export function fillTooltip(tooltip, title, lines) {
  const elements = [["b", title], ...lines.filter(Boolean).map((line) => ["span", line])];
  tooltip.replaceChildren(...elements.map(([tag, text]) => {
    const element = document.createElement(tag);
    element.textContent = text;
    return element;
  }));
}

/** Place a tooltip beside the pointer and within its figure; above the pointer if there is no room below. */
export function placeTooltip(tooltip, figure, { clientX, clientY }) {
  const box = figure.getBoundingClientRect();
  const [x, y] = [clientX - box.left + 14, clientY - box.top + 16];
  tooltip.style.left = `${Math.max(0, Math.min(x, box.width - tooltip.offsetWidth - 4))}px`;
  tooltip.style.top = `${clientY + 24 + tooltip.offsetHeight > innerHeight ? y - tooltip.offsetHeight - 30 : y}px`;
}
