// Numbers as text, in the same style as roast_analyze.report.quantities.

/** Return a number with three significant digits, but all digits before the point. */
export const significant = (value) =>
  value.toLocaleString("en", Math.abs(value) < 100 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 });

export const integer = (value) => value.toLocaleString("en");

export const plural = (n, noun, nouns = `${noun}s`) => `${integer(n)} ${n === 1 ? noun : nouns}`;

/** Return a duration in seconds with its unit: "12.3 ms", "3 min 12 s". */
export function duration(seconds) {
  if (seconds < 0) return `−${duration(-seconds)}`;
  if (seconds === 0) return "0 s";
  if (seconds < 0.9995e-3) return `${significant(seconds * 1e6)} µs`;
  if (seconds < 0.9995) return `${significant(seconds * 1e3)} ms`;
  if (seconds < 59.95) return `${significant(seconds)} s`;
  const [length, unit, small, smallUnit] = seconds < 3599.5 ? [60, "min", 1, "s"]
    : seconds < 86370 ? [3600, "h", 60, "min"] : [86400, "d", 3600, "h"];
  const whole = Math.round(seconds / small) * small;
  const rest = (whole % length) / small;
  return `${integer(Math.floor(whole / length))} ${unit}${rest ? ` ${rest} ${smallUnit}` : ""}`;
}

/** Return a fraction of one as a percentage. */
export function percent(fraction) {
  if (!(fraction > 0)) return "0 %";
  const value = 100 * fraction;
  return value < 0.1 ? "<0.1 %" : `${value.toFixed(value < 10 ? 1 : 0)} %`;
}
