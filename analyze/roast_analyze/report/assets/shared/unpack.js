// Data that roast_analyze.report.packed embeds: base64 of gzip.

function decodeBase64(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/**
 * Return the text packed in an element.
 *
 * @throws {Error} if the browser has no DecompressionStream; the message is shown to the reader.
 */
export async function unpackText(element) {
  if (typeof DecompressionStream === "undefined") {
    throw new Error(
      "This browser cannot show the figures: it lacks DecompressionStream, which all browsers have " +
      "had since 2023. Text and tables are complete without the figures.");
  }
  const bytes = decodeBase64(element.textContent.trim());
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** Return the JSON value packed in an element. */
export const unpackJson = async (element) => JSON.parse(await unpackText(element));
