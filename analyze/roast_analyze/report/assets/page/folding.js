// Sections below the heading "Details": folded until the reader opens them, or a link to them.
import { all, nextFrame } from "./dom.js";

const SETTLING_FRAMES = 20;

const foldOf = (element) => element?.closest("section.folded")?.querySelector("details");

export const isFolded = (element) => foldOf(element)?.open === false;

/** Call a function once an element is not folded away: now or later. */
export function onceUnfolded(element, act) {
  if (!isFolded(element)) { act(); return; }
  foldOf(element).addEventListener("toggle", act, { once: true });
}

/** Unfold the section that an address within the page is in, and scroll to it. */
function follow(hash) {
  const target = document.getElementById(decodeURIComponent(hash.slice(1)));
  const fold = foldOf(target);
  if (!fold || fold.open) return;
  fold.open = true;
  settle(target);
}

/** Scroll to an element until it stays in its place: tables and figures above it get their size when they are painted. */
async function settle(target) {
  const top = () => target.getBoundingClientRect().top;
  for (let frame = 0, last; frame < SETTLING_FRAMES; frame += 1) {
    target.scrollIntoView({ behavior: "instant" });
    const scrolled = top();
    await nextFrame();
    if (top() === scrolled && scrolled === last) return;
    last = scrolled;
  }
}

export function startFolding() {
  // Also if the address is the same as before.
  document.addEventListener("click", ({ target }) => {
    const link = target.closest?.('a[href^="#"]');
    if (link) follow(link.hash);
  });
  addEventListener("hashchange", () => follow(location.hash));
  document.getElementById("unfold")?.addEventListener("click", () => {
    for (const fold of all("section.folded > details")) fold.open = true;
  });
  follow(location.hash);
}
