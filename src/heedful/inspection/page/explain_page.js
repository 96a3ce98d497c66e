// The standalone page: it reads its data, and cannot compute again.

import { showExplanation } from "./explain_view.js";
import { followTheme } from "./page_theme.js";

followTheme();

const explained = JSON.parse(document.getElementById("document").textContent);
document.getElementById("about").textContent = [explained.summary, ...explained.texts].join(" · ");
showExplanation(document.getElementById("explain"), explained);
