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
const { source, target } = attention.sequences;
// Special tokens are no part of a text.
const text = (tokens) => tokens.filter((token) => !/^[⟨<[].+[⟩>\]]$/.test(token)).join("").replaceAll("\u2581", " ");
const texts = [source, target].filter(Boolean).map((tokens) => text(tokens).trim());
// A language model's output begins as the text that it reads.
if (texts[1]?.startsWith(texts[0])) texts.shift();
document.getElementById("about").textContent = [attention.family.replace("_", "-"), ...texts].join(" · ");
showAttention(document.getElementById("attention"), attention);
