/** Return the colors of the current theme, and the font. */
export function readColors() {
  const style = getComputedStyle(document.documentElement);
  const css = (name) => style.getPropertyValue(name).trim();
  return {
    font: `12px ${css("--sans")}`,
    ink: css("--ink"), soft: css("--soft"), line: css("--line"), raised: css("--raised"),
    presence: css("--timeline-presence"), transfer: css("--timeline-transfer"),
    bad: css("--timeline-bad"), area: css("--timeline-area"),
    computing: css("--timeline-computing"), brush: css("--timeline-brush"),
  };
}
