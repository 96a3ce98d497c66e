// What the page does where it stands alone: it reads its data, and has a switch between light and dark.

import { showAttention } from "./attention_view.js";

const toggle = document.getElementById("theme-toggle");
const preference = matchMedia("(prefers-color-scheme: dark)");

function currentTheme() {
  return document.documentElement.dataset.theme ?? (preference.matches ? "dark" : "light");
}

function showTheme() {
  const dark = currentTheme() === "dark";
  toggle.textContent = dark ? "Light" : "Dark";
  toggle.setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
}

toggle.addEventListener("click", () => {
  document.documentElement.dataset.theme = currentTheme() === "dark" ? "light" : "dark";
  showTheme();
});
preference.addEventListener("change", showTheme);
showTheme();

const attention = JSON.parse(document.getElementById("document").textContent);
const parts = [attention.family.replace("_", "-"), ...attention.texts];
document.getElementById("about").textContent = parts.join(" · ");
showAttention(document.getElementById("attention"), attention);
