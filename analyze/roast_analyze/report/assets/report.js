// The second script of a report, at its end. The first is timeline/main.js.
import { drawFlame } from "./flame/main.js";
import { startPage } from "./page/main.js";

const timelineDrawn = () => document.querySelector("figure.timeline")?.drawn;

startPage([timelineDrawn, drawFlame]);
