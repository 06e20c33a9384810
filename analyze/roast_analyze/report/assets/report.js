// The second script of a report, at its end. The first is timeline/main.js.
import { drawFlame } from "./flame/main.js";
import { startPage } from "./page/main.js";

startPage({ "figure.timeline": (figure) => figure.drawn, "figure.flame": drawFlame });
