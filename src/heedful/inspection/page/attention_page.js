// The standalone page: it reads its data, and has a switch between light and dark.

import { showAttention } from "./attention_view.js";
import { followTheme } from "./page_theme.js";

followTheme();
const attention = JSON.parse(document.getElementById("document").textContent);
const parts = [attention.family.replace("_", "-"), ...attention.texts];
document.getElementById("about").textContent = parts.join(" · ");
showAttention(document.getElementById("attention"), attention);
