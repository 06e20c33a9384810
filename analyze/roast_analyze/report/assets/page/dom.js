export const all = (selector, within = document) => [...within.querySelectorAll(selector)];

/** Announce a message to screen readers. */
export const announce = (text) => { document.getElementById("status").textContent = text; };

/** Resolve after the next frame is painted, so that the page answers the reader between two steps of work. */
export const nextFrame = () => new Promise((done) => (
  document.hidden ? setTimeout(done) : requestAnimationFrame(() => setTimeout(done))));
