// Numbers as text, in the same style as roast_analyze.report.quantities.

/** Return a number with three significant digits. */
export const significant = (value) =>
  Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });

export const integer = (value) => value.toLocaleString("en");

export const plural = (n, noun) => `${integer(n)} ${noun}${n === 1 ? "" : "s"}`;

/** Return a duration in seconds with its unit: "12.3 ms", "3 min 12 s". */
export function duration(seconds) {
  if (seconds < 0) return `−${duration(-seconds)}`;
  if (seconds === 0) return "0 s";
  if (seconds < 1e-3) return `${significant(seconds * 1e6)} µs`;
  if (seconds < 0.9995) return `${significant(seconds * 1e3)} ms`;
  if (seconds < 119.5) return `${significant(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${integer(Math.floor(whole / 3600))} h ${Math.floor(whole / 60) % 60} min`;
}

/** Return a fraction of one as a percentage. */
export function percent(fraction) {
  if (!(fraction > 0)) return "0 %";
  const value = 100 * fraction;
  return value < 0.1 ? "<0.1 %" : `${value.toFixed(value < 10 ? 1 : 0)} %`;
}
