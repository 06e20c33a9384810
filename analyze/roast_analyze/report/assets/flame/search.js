import { ROOT } from "./data.js";

/**
 * Search the functions by name and file.
 *
 * @returns {{matches: Uint8Array?, isInvalid: boolean}} `matches` is 1 for each frame that is found,
 *   and null without a search; `isInvalid` is true of a malformed regular expression.
 */
export function search(data, text, isRegex) {
  if (!text) return { matches: null, isInvalid: false };
  let matchesText;
  if (isRegex) {
    try {
      const pattern = new RegExp(text, "i");
      matchesText = (label) => pattern.test(label);
    } catch {
      return { matches: null, isInvalid: true };
    }
  } else {
    const lowered = text.toLowerCase();
    matchesText = (label) => label.toLowerCase().includes(lowered);
  }
  const matches = Uint8Array.from(data.fullLabels,
    (label, frame) => (data.kinds[frame] !== ROOT && matchesText(label) ? 1 : 0));
  return { matches, isInvalid: false };
}

/** Return how many shown functions match, and the time of all stacks that contain one. */
export function matchedTime(matches, tree, functionTotal) {
  const { matched, parents, frames, self, count } = tree;
  let seconds = 0;
  matched[0] = 0;
  for (let node = 1; node < count; node++) {
    matched[node] = matched[parents[node]] | matches[frames[node]];
    if (matched[node]) seconds += self[node];
  }
  let functions = 0;
  for (let frame = 0; frame < matches.length; frame++) if (matches[frame] && functionTotal[frame] > 0) functions++;
  return { functions, seconds };
}
