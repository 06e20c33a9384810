import { SCHEDULER } from "./data.js";

/** What the reader has chosen. Paths are arrays of frames from below the root. */
export class State {
  constructor(data) {
    this.data = data;
    const indices = data.groups.map(([worker]) => worker);
    this.worker = indices.some((worker) => worker >= 0) ? "all"
      : indices.includes(SCHEDULER) ? "scheduler" : String(indices[0]);
    this.prefix = "all";
    this.fold = false; // own code only
    this.inverted = false;
    this.heavy = false; // siblings by weight
    this.regex = false;
    this.sandwich = false; // callers and callees of one function
    this.center = -1; // this function
    this.start = 0; // the brushed time range, in buckets
    this.stop = data.bucketCount;
    this.focus = []; // path to the function that fills the width
    this.cursor = null; // path to the function with keyboard focus
  }

  get isBrushed() { return !this.isYappi && (this.start > 0 || this.stop < this.data.bucketCount); }

  // Yappi's measurements have no times and no prefixes.
  get isYappi() { return Number(this.worker) < SCHEDULER; }

  /** Return 1 for each group that is chosen, else 0. */
  chosenGroups() {
    return Uint8Array.from(this.data.groups, ([worker, prefix]) => {
      if (this.worker === "scheduler") return worker === SCHEDULER ? 1 : 0;
      if (worker < 0) return String(worker) === this.worker ? 1 : 0;
      const isWorker = this.worker === "all" || worker === Number(this.worker);
      return isWorker && (this.prefix === "all" || prefix === Number(this.prefix)) ? 1 : 0;
    });
  }
}
