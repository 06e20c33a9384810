// The link of the navigation to the section that the reader has scrolled to.
import { all } from "./dom.js";

export function startNavigation() {
  const links = new Map(all("nav a").map((link) => [link.hash.slice(1), link]));
  function markCurrent() {
    const line = innerHeight * 0.3;
    const ids = [...links.keys()];
    let current = ids.findLast((id) => document.getElementById(id).getBoundingClientRect().top <= line);
    // A short last section never reaches the line.
    if (scrollY > 0 && scrollY + innerHeight >= document.body.scrollHeight - 4) current = ids.at(-1);
    for (const [id, link] of links) {
      if (id === (current ?? "verdict")) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }
  addEventListener("scroll", markCurrent, { passive: true });
  markCurrent();
}
