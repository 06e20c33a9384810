"use strict";
// Measurements of page_latency.py, installed before the page's own scripts run. Times are in
// milliseconds; those of `opening` are relative to the start of the navigation.
window.latency = (() => {
  const SETTLED_MS = 250; // plotly and search boxes defer some of their work by up to this time
  const GIVEN_UP_MS = 120_000;
  const givenUp = (reject, why) => setTimeout(() => reject(new Error(why)), GIVEN_UP_MS);

  // A chart is displayed with the frame after the one in which it was drawn.
  const whenSeen = (note) => requestAnimationFrame(() => setTimeout(() => note(performance.now())));
  const opening = new Promise((resolve, reject) => {
    const noted = {};
    const noteOnce = (name) => {
      if (name in noted) return;
      noted[name] = null;
      whenSeen((ms) => { noted[name] = ms; });
    };
    new MutationObserver((changes) => {
      for (const { target } of changes) {
        if (target.dataset.state !== "drawn") continue;
        if (target === document.documentElement) {
          whenSeen((allMs) => resolve({ ...noted, allMs }));
          continue;
        }
        // The upper part of the timeline is a separate chart.
        if (target.matches("figure, .timeline-top")) noteOnce("firstMs");
        if (target.matches("figure")) noteOnce("figureMs");
      }
    }).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-state"] });
    givenUp(reject, "not all was drawn");
  });

  const longest = { event: 0, longtask: 0 };
  const note = (entries) => {
    for (const { entryType, duration } of entries) longest[entryType] = Math.max(longest[entryType], duration);
  };
  const observers = Object.keys(longest).map((type) => {
    const observer = new PerformanceObserver((list) => note(list.getEntries()));
    observer.observe({ type, durationThreshold: 16 });
    return observer;
  });
  const noteTheRest = () => observers.forEach((observer) => note(observer.takeRecords()));

  let answer;
  return {
    opening,
    // Time the next event of this type, after skipping `before` such events.
    expect(type, before) {
      noteTheRest();
      longest.event = longest.longtask = 0;
      answer = new Promise((resolve, reject) => {
        givenUp(reject, `no ${type} was answered`);
        addEventListener(type, function seen({ timeStamp }) {
          if (before-- > 0) return;
          removeEventListener(type, seen, true);
          requestAnimationFrame(() => requestAnimationFrame(() => {
            // Lowest priority, so that all other pending tasks run first.
            scheduler.postTask(() => resolve(performance.now() - timeStamp), { priority: "background" });
          }));
        }, true);
      });
    },
    async took() {
      const frame = await answer;
      await new Promise((done) => setTimeout(done, SETTLED_MS));
      noteTheRest();
      return [frame, longest.event, longest.longtask];
    },
  };
})();
