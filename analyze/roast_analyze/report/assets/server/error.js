// A page with an error.
import { startTheme } from "../page/theme.js";

startTheme();
