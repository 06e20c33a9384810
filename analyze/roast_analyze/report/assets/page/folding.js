// Sections below the heading "Details": folded until the reader opens them, or a link to them.
import { all } from "./dom.js";

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
  target.scrollIntoView();
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
