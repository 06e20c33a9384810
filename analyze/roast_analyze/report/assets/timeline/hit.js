const SIGN_PX = 6; // how near to a sign the pointer has to be
const SLACK_PX = 2;

/**
 * Return what is drawn on the lower canvas at a position, or null: `{mark}` or `{bar}` with its index,
 * `{process, event, row}` for a worker that joined or ended, `{lane, bucket}` for short tasks.
 */
export function hitTest({ data, state, layout }, { x, y }) {
  if (x < layout.gutter) return null;
  const lanesY = y + layout.scrollTop;
  const place = layout.placeAt(lanesY);
  if (place >= state.rows.length) return null;
  const row = state.rows[place];
  const laneHeight = layout.rowHeight(place) / data.lanes[row];
  const slot = Math.min(Math.floor((lanesY - layout.rowTops[place]) / laneHeight), data.lanes[row] - 1);
  const lane = data.firstLane[row] + slot;
  const seconds = layout.secondsAt(x);
  const isNear = (instant) => Math.abs(layout.x(instant) - x) <= SIGN_PX;
  return markAt() ?? barAt() ?? processAt() ?? cellAt();

  // A sign may be higher than its lane.
  function markAt() {
    const { first, order, starts } = data.marks;
    for (let other = data.firstLane[row]; other < data.firstLane[row + 1]; other++) {
      const middle = layout.rowTops[place] + (other - data.firstLane[row] + 0.5) * laneHeight;
      if (Math.abs(middle - lanesY) > SIGN_PX) continue;
      for (let k = first[other]; k < first[other + 1]; k++) {
        if (state.isMarkShown(order[k]) && isNear(starts[order[k]])) return { mark: order[k] };
      }
    }
    return null;
  }

  // Of bars that overlap, the last one is drawn on top.
  function barAt() {
    const { first, order, starts, lengths } = data.bars;
    const slack = layout.secondsAt(x + SLACK_PX) - seconds;
    let inside = null;
    let near = null;
    for (let k = first[lane]; k < first[lane + 1]; k++) {
      const i = order[k];
      if (starts[i] > seconds + slack) break;
      if (!state.isBarShown(i)) continue;
      const stop = starts[i] + lengths[i];
      if (starts[i] <= seconds && seconds <= stop) inside = { bar: i };
      if (stop >= seconds - slack) near = { bar: i };
    }
    return inside ?? near;
  }

  function processAt() {
    for (const process of data.processes[row]) {
      if (process.joined && isNear(process.start)) return { process, event: "join", row };
      if (process.end && isNear(process.stop)) return { process, event: "end", row };
    }
    return null;
  }

  function cellAt() {
    if (state.areAttemptsFiltered) return null;
    const { first, buckets, kinds } = data.cells;
    const bucket = Math.floor(seconds / data.bucketSeconds);
    for (let i = first[lane]; i < first[lane + 1]; i++) {
      if (buckets[i] === bucket && state.isKindShown[kinds[i]]) return { lane, bucket };
    }
    return null;
  }
}
