// The sandwich of a function: its calls merged into one box, what they call below it, and their
// callers above it, the nearest first. Boxes are those of layout.js; `step` tells callers, whose
// paths have complements of frames, from callees.

const MIN_BOX_PX = 0.5; // narrower boxes, and what is beyond them, are left out

/** Return the boxes of the sandwich by row; none if the chosen samples lack the function. */
export function layOutSandwich({ tree, width, data, state: { center, heavy } }) {
  const { count, frames, parents, total, outermost, first, children } = tree;
  const calls = [];
  for (let node = 1; node < count; node++) {
    // Recursive calls are part of the outermost one.
    if (frames[node] === center && outermost[node] && total[node] > 0) calls.push([node, total[node]]);
  }
  const sum = (set) => set.reduce((seconds, [, weight]) => seconds + weight, 0);
  if (!calls.length) return [];
  const middle = { frame: center, x: 0, w: width, depth: 0, above: null, set: calls, total: sum(calls), self: 0, ambiguous: 0 };

  function* calleesOf(set) {
    for (const [node] of set) {
      for (let i = first[node]; i < first[node + 1]; i++) if (total[children[i]] > 0) yield [children[i], total[children[i]]];
    }
  }
  // A caller has the time of the calls, not its own.
  function* callersOf(set) {
    for (const [node, weight] of set) if (parents[node] > 0) yield [parents[node], weight];
  }

  /** Return the boxes beyond the middle by distance. */
  function spread(next, isCaller) {
    const rows = [[middle]];
    while (rows.at(-1).length) {
      const row = [];
      for (const box of rows.at(-1)) {
        const sets = new Map();
        for (const entry of next(box.set)) {
          const frame = frames[entry[0]];
          if (!sets.has(frame)) sets.set(frame, []);
          sets.get(frame).push(entry);
        }
        const parts = [...sets].map(([frame, set]) => ({ frame, set, total: sum(set) }));
        parts.sort(heavy ? (a, b) => b.total - a.total : (a, b) => data.rank[a.frame] - data.rank[b.frame]);
        let { x } = box;
        for (const part of parts) {
          const w = (part.total / middle.total) * width;
          if (w >= MIN_BOX_PX) {
            row.push({ ...part, x, w, depth: box.depth + 1, above: box, step: isCaller ? ~part.frame : part.frame, self: 0, ambiguous: 0 });
          }
          x += w;
        }
      }
      rows.push(row);
    }
    return rows.slice(1, -1);
  }
  return [...spread(callersOf, true).reverse(), [middle], ...spread(calleesOf, false)];
}
