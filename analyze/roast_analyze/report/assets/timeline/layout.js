export const CURVE_PX = 84;
export const AXIS_PX = 26;
export const GAP_PX = 6; // between the curve and the utilization map
export const ROW_GAP_PX = 3;
const MAX_MAP_PX = 80;
const LANES_PX = 420; // height of all lanes together, unless that makes them too thin
const [MIN_LANE_PX, MAX_LANE_PX] = [4, 22];
const MIN_WIDTH_PX = 220;

/** Where things are drawn, in CSS pixels: x by time on both canvases, y of rows on the lower one. */
export class Layout {
  constructor(data, state, { canvas, scroller }) {
    Object.assign(this, { data, state, canvas, scroller });
    this.longestName = data.workers.reduce((longest, name) => (name.length > longest.length ? name : longest), "");
    this.mapRowHeight = data.map.length
      ? Math.max(2, Math.min(10, Math.floor(MAX_MAP_PX / data.map.length))) : 0;
    this.mapHeight = data.map.length * this.mapRowHeight;
    this.topHeight = CURVE_PX + (data.map.length ? GAP_PX + this.mapHeight : 0) + AXIS_PX;
  }

  /** Measure the page and place the rows. Reading a size makes the browser lay out the page. */
  update(font) {
    this.width = Math.max(this.scroller.clientWidth, MIN_WIDTH_PX);
    const lanes = this.state.rows.reduce((sum, row) => sum + this.data.lanes[row], 0);
    const lanePx = Math.max(MIN_LANE_PX, Math.min(MAX_LANE_PX, Math.floor(LANES_PX / Math.max(lanes, 1)) - 1));
    this.rowTops = [0]; // of the shown rows, and the end of the last
    for (const row of this.state.rows) {
      this.rowTops.push(this.rowTops.at(-1) + Math.max(this.data.lanes[row] * lanePx, 7) + ROW_GAP_PX);
    }
    const context = this.canvas.getContext("2d");
    context.font = font;
    const nameWidth = Math.ceil(context.measureText(this.longestName).width) + 14;
    this.gutter = Math.max(Math.min(nameWidth, this.width * 0.28, 170), 46); // for the names of rows
    this.plotWidth = Math.max(this.width - this.gutter - 8, 60);
  }

  x(seconds) {
    const { start, stop } = this.state;
    return this.gutter + ((seconds - start) / (stop - start)) * this.plotWidth;
  }

  secondsAt(x) {
    const { start, stop } = this.state;
    return start + ((x - this.gutter) / this.plotWidth) * (stop - start);
  }

  get lanesHeight() { return Math.max(this.rowTops.at(-1), 20); }

  // The lower canvas is only as high as its visible part, and is redrawn as the lanes scroll.
  get visibleHeight() {
    return Math.min(this.lanesHeight, Math.max(this.scroller.clientHeight, 1) || 560);
  }

  get scrollTop() {
    return Math.min(this.scroller.scrollTop, Math.max(this.lanesHeight - this.visibleHeight, 0));
  }

  rowHeight(place) { return this.rowTops[place + 1] - this.rowTops[place] - ROW_GAP_PX; }

  /** Return the place of the shown row at a height within all lanes; below the last, the number of rows. */
  placeAt(y) {
    let [low, high] = [0, this.state.rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rowTops[middle + 1] <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
