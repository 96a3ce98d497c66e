// Labels with their probabilities, as bars.

import { element, percent } from "./dom.js";
import { meter } from "./panes.js";

const MOST_BARS = 12;

/** Rows of {label: probability}, the likeliest first. */
export function bars(probabilities) {
  const ranking = Object.entries(probabilities).sort((one, other) => other[1] - one[1]);
  const rows = ranking.slice(0, MOST_BARS).map(([label, probability], index) => {
    return element(
      "li",
      { class: index ? "bar-row" : "bar-row first" },
      element("span", { class: "bar-label" }, label),
      meter(probability),
      element("span", { class: "bar-value" }, percent(probability)),
    );
  });
  const list = element("ol", { class: "bars" }, ...rows);
  if (ranking.length <= MOST_BARS) return list;
  const rest = `and ${ranking.length - MOST_BARS} less likely ones`;
  return element("div", {}, list, element("p", { class: "muted" }, rest));
}
