import { sizedContext } from "../shared/canvas.js";
import { AMBIGUOUS, RARE } from "./data.js";
import { amount } from "./describe.js";
import { hasPath } from "./layout.js";

export const ROW_PX = 19;
const CHARACTER_PX = 6.3; // measuring each label would take longer than drawing it

export const graphHeight = (boxes) => Math.max(boxes.length, 1) * ROW_PX + 1;

/** Draw the boxes that are scrolled into view. */
export function drawGraph(flame) {
  const { boxes, colors, data, matches, state, elements: { canvas, content, scroller } } = flame;
  const height = graphHeight(boxes);
  content.style.height = `${height}px`;
  const visible = Math.max(Math.min(height, scroller.clientHeight || height), ROW_PX);
  const context = sizedContext(canvas, flame.width, visible);
  const top = Math.min(scroller.scrollTop, Math.max(height - visible, 0));
  context.font = `11.5px ${colors.sans}`;
  context.textBaseline = "middle";
  context.direction = "ltr"; // a name may contain marks that change the direction
  let cursorBox = null;
  const lastRow = Math.min(boxes.length - 1, Math.ceil((top + visible) / ROW_PX));
  for (let depth = Math.floor(top / ROW_PX); depth <= lastRow; depth++) {
    const y = depth * ROW_PX - top;
    const isCaller = !state.sandwich && depth < state.focus.length;
    for (const box of boxes[depth]) {
      const isMatch = matches && matches[box.frame];
      const isHatched = data.kinds[box.frame] === AMBIGUOUS || data.kinds[box.frame] === RARE;
      const shades = colors.kinds[data.kinds[box.frame]];
      // Pale: callers of the focus, and functions that a search does not find.
      context.globalAlpha = isCaller || (matches && !isMatch) ? 0.55 : 1;
      context.fillStyle = isMatch ? colors.match : isHatched ? colors.hatch : shades[flame.shades[box.frame] % shades.length];
      // Wide boxes leave a thin gap to their neighbor.
      context.fillRect(box.x, y + 1, Math.max(box.w - (box.w > 2 ? 0.7 : 0), 0.5), ROW_PX - 1);
      if (box.w > 24) {
        const text = box.depth === 0 ? `${data.names[box.frame]}: ${amount(data, box.total)}` : fittingLabel(data, box.frame, box.w - 8);
        if (text) {
          context.globalAlpha = isCaller ? 0.75 : 1;
          if (isHatched && !isMatch) {
            [context.fillStyle] = colors.kinds[AMBIGUOUS];
            context.fillRect(box.x + 2, y + 3, Math.min(text.length * CHARACTER_PX + 3, box.w - 4), ROW_PX - 5);
          }
          context.fillStyle = isMatch ? colors.matchInk : colors.ink;
          context.fillText(text, box.x + 4, y + ROW_PX / 2 + 1, Math.max(box.w - 6, 1));
        }
      }
      if (hasPath(box, state.cursor ?? (state.sandwich ? [] : null))) cursorBox = box;
    }
  }
  context.globalAlpha = 1;
  if (cursorBox) {
    context.strokeStyle = colors.outline;
    context.lineWidth = 2;
    context.strokeRect(cursorBox.x + 1, cursorBox.row * ROW_PX - top + 2, Math.max(cursorBox.w - 2, 1), ROW_PX - 3);
  }
}

/** Return the name of a function with its file, without it or shortened, as there is room. */
function fittingLabel({ labels, names }, frame, widthPx) {
  const length = Math.floor(widthPx / CHARACTER_PX);
  if (length < 3) return "";
  if (labels[frame].length <= length) return labels[frame];
  const name = names[frame];
  return name.length <= length ? name : `${name.slice(0, length - 1)}…`;
}
