import { ERRED, LOST, SEVERAL } from "./data.js";

const MAX_ZOOM = 1e-6; // the smallest visible share of the run

/** What the reader has chosen: time range, filters and colors; and what follows from the filters. */
export class State {
  constructor(data) {
    this.data = data;
    this.start = 0; // the visible time range, in seconds since the start of the recording
    this.stop = data.seconds;
    this.prefix = "all"; // an index as text, as the value of a <select>
    this.dataset = "all";
    this.worker = "all";
    this.failedOnly = false;
    this.color = data.prefixes.length > 0 ? "prefix" : "dataset";
    this.brush = null; // [start, stop] of the time range that is being dragged
    this.selected = null; // the result of hitTest for what was clicked
  }

  get isZoomed() { return this.start > 0 || this.stop < this.data.seconds; }

  get isFiltered() {
    return this.prefix !== "all" || this.dataset !== "all" || this.worker !== "all" || this.failedOnly;
  }

  /** Set the visible time range, cut to the run and to the maximum zoom. */
  setRange(start, stop) {
    const { seconds } = this.data;
    const length = Math.min(Math.max(stop - start, seconds * MAX_ZOOM, 1e-5), seconds);
    this.start = Math.max(0, Math.min(start, seconds - length));
    this.stop = Math.min(this.start + length, seconds);
  }

  /** Apply the filters and the color scheme: `rows`, `isKindShown`, `kindColors`, `computing`. */
  applyFilters() {
    const { kinds, prefixes, datasets, others, hiddenWorkers, lanes } = this.data;
    const accepts = (chosen, index) => chosen === "all" || Number(chosen) === index;
    this.isKindShown = Uint8Array.from(kinds,
      ([prefix, dataset]) => (accepts(this.prefix, prefix) && accepts(this.dataset, dataset) ? 1 : 0));
    this.kindColors = kinds.map(([prefix, dataset]) => (
      this.color === "dataset" ? datasets[dataset]?.[1] : prefixes[prefix]?.[1]) ?? others);
    this.rows = this.worker === "all" ? [...lanes.keys()] : [Number(this.worker)];
    // Whether kinds that are not shown may have attempts of the chosen dataset.
    this.areKindsPartial = this.dataset !== "all"
      && kinds.some(([prefix, dataset]) => dataset === SEVERAL && accepts(this.prefix, prefix));
    // Whether attempts that pass the filters are missing in `computing`.
    this.isComputingPartial = this.areKindsPartial || (this.worker === "all" && hiddenWorkers > 0);
    // Tasks computing that pass the filters, by bucket of the curve; null without a filter.
    this.computing = this.isFiltered ? this.#computing() : null;
  }

  // Transfers have no prefix, dataset and outcome.
  get areTransfersShown() { return !this.failedOnly && this.prefix === "all" && this.dataset === "all"; }

  isBarShown(i) {
    const { kinds, outcomes } = this.data.bars;
    return this.isKindShown[kinds[i]] && (!this.failedOnly || (outcomes[i] >= ERRED && outcomes[i] <= LOST));
  }

  isMarkShown(i) { return this.isKindShown[this.data.marks.kinds[i]]; }

  #computing() {
    const { bars, bucketSeconds, cells, curve, firstLane } = this.data;
    const { begin, seconds } = curve;
    const sums = new Float64Array(curve.computing.length);
    const add = (start, stop, amount) => {
      const low = Math.max(0, Math.floor((start - begin) / seconds));
      const high = Math.min(sums.length - 1, Math.floor((stop - begin) / seconds));
      for (let i = low; i <= high; i++) {
        const inside = Math.min(stop, begin + (i + 1) * seconds) - Math.max(start, begin + i * seconds);
        if (inside > 0) sums[i] += amount * inside / seconds;
      }
    };
    for (const row of this.rows) {
      for (let lane = firstLane[row]; lane < firstLane[row + 1]; lane++) {
        for (let k = bars.first[lane]; k < bars.first[lane + 1]; k++) {
          const i = bars.order[k];
          if (this.isBarShown(i)) add(bars.starts[i], bars.starts[i] + bars.lengths[i], 1);
        }
        for (let i = cells.first[lane]; i < cells.first[lane + 1]; i++) {
          if (!this.isKindShown[cells.kinds[i]]) continue;
          // Cells do not record outcomes.
          if (this.failedOnly) this.isComputingPartial = true;
          else add(cells.buckets[i] * bucketSeconds, (cells.buckets[i] + 1) * bucketSeconds, cells.shares[i]);
        }
      }
    }
    return sums;
  }
}
