"use strict";
// What several scripts of the page need: JSON that was packed with gzip and base64.
async function unpackedText(element) {
  if (typeof DecompressionStream === "undefined") {
    throw new Error(
      "This browser cannot unpack what is drawn here: it has no DecompressionStream, " +
      "which browsers have since 2023. The sentences and tables are complete without it.");
  }
  const stream = new Blob([bytesOf(element.textContent.trim())]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}
function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}
const unpacked = async (element) => JSON.parse(await unpackedText(element));

// Give an element of the page's main part once the browser has read all of it, and more.
const elementRead = (id) => new Promise((resolve) => {
  const main = document.querySelector("main");
  const observer = new MutationObserver(look);
  function look() {
    const element = document.getElementById(id);
    if (!element?.nextSibling && document.readyState === "loading") return;
    observer.disconnect();
    resolve(element);
  }
  observer.observe(main, { childList: true });
  look();
});

// What draws itself without plotly, in the order in which it is drawn; report.js waits for it.
const drawings = [];

// This much of the page is there: controls can be shown.
document.documentElement.classList.add("scripted");
