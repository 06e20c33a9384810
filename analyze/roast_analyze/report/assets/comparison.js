// The second script of a comparison, at its end. The first is shared/scripted.js.
import { startPage } from "./page/main.js";

startPage({});
