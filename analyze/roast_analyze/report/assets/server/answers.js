// Answers of the server, again and again while the page is visible.
const INTERVAL_MS = 1000;

const visible = () => new Promise((done) => {
  if (!document.hidden) { done(); return; }
  document.addEventListener("visibilitychange", () => done(), { once: true });
});
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/**
 * Ask for an address each second, and show in #trouble if there is no answer.
 *
 * @param {() => string} address
 * @param {(answer: object) => boolean} use Shows an answer; false if no more are needed.
 */
export async function renew(address, use, interval = INTERVAL_MS) {
  const trouble = document.getElementById("trouble");
  for (;;) {
    await visible();
    let text = "";
    try {
      const response = await fetch(address(), { cache: "no-store" });
      if (response.ok) {
        if (!use(await response.json())) return;
      } else {
        text = response.status === 404 ? "The run is not in the list any more." : await response.text();
      }
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // the page is wrong, not the network
      text = "The server does not answer. Is it still running?";
    }
    trouble.textContent = text;
    trouble.hidden = !text;
    await pause(text ? 3 * interval : interval);
  }
}
