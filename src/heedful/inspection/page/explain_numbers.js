// The numbers of the followed token's row, as bars over the keys, or as a vector.

import { element } from "./attention_elements.js";
import { isDark } from "./attention_colours.js";
import { signedInk } from "./explain_colours.js";
import { readableNumber } from "./explain_document.js";

const MOST_BARS = 24;
const FIRST_NUMBERS = 6;

export function rowOf(sheet, place) {
  const row = Math.min(Math.max(0, place), sheet.height - 1);
  return sheet.values.subarray(row * sheet.width, (row + 1) * sheet.width);
}

// A bar for each key; where the computation was changed, a mark shows the earlier value.
export function keyBars(sheet, place, before) {
  const row = rowOf(sheet, place);
  const earlier = before && before.width === sheet.width ? rowOf(before, place) : null;
  let largest = 0;
  for (const value of [...row, ...(earlier ?? [])]) if (Number.isFinite(value)) largest = Math.max(largest, Math.abs(value));
  const entries = [...row].slice(0, MOST_BARS).map((value, key) => {
    const share = Number.isFinite(value) && largest ? Math.abs(value) / largest : 0;
    const bar = element("span", { class: value < 0 ? "explain-bar cold" : "explain-bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", share);
    if (earlier) {
      bar.classList.add("has-before");
      bar.style.setProperty("--before", largest ? Math.min(1, Math.abs(earlier[key]) / largest) : 0);
    }
    const was = earlier && earlier[key] !== value ? `, was ${readableNumber(earlier[key])}` : "";
    return element(
      "li",
      {},
      element("span", { class: "explain-key", text: sheet.columns[key] }),
      bar,
      element("span", { class: "explain-value", text: readableNumber(value) }),
      element("span", { class: "unseen", text: was }),
    );
  });
  if (row.length > MOST_BARS) entries.push(element("li", { class: "explain-more", text: `and ${row.length - MOST_BARS} more` }));
  return element("ol", { class: "explain-bars" }, ...entries);
}

// The first numbers of a vector, its mean and spread, and all numbers as small bars.
export function vectorLine(sheet, place, view) {
  const row = rowOf(sheet, place);
  const shown = [...row].slice(0, FIRST_NUMBERS).map(readableNumber).join(", ");
  const more = row.length > FIRST_NUMBERS ? ", …" : "";
  const mean = row.reduce((sum, value) => sum + value, 0) / row.length;
  const deviation = Math.sqrt(row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / row.length);
  const facts = row.length > 1 ? `mean ${readableNumber(mean)}, standard deviation ${readableNumber(deviation)}` : "";
  return element(
    "div",
    { class: "explain-vector" },
    row.length > 1 ? profile(row, sheet.largest, isDark(view)) : null,
    element("p", { class: "explain-digits", text: row.length > 1 ? `(${shown}${more})` : shown }),
    facts ? element("p", { class: "explain-facts", text: facts }) : null,
  );
}

function profile(row, largest, dark) {
  const canvas = element("canvas", { class: "explain-profile", "aria-hidden": "true" });
  const height = 44;
  canvas.width = Math.max(512, row.length);
  canvas.height = height;
  const context = canvas.getContext("2d");
  const step = canvas.width / row.length;
  row.forEach((value, place) => {
    context.fillStyle = signedInk(value, dark);
    const size = largest ? (Math.abs(value) / largest) * (height / 2) : 0;
    context.fillRect(place * step, value < 0 ? height / 2 : height / 2 - size, Math.max(1, step - (step > 3 ? 1 : 0)), size);
  });
  return canvas;
}
