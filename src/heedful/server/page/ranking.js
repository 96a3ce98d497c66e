// Labels with their probabilities, as bars.

import { element, percent } from "./dom.js";
import { meter } from "./panes.js";

const MOST_BARS = 12;

/** Rows of {label: probability}, the likeliest first. */
export function ranking(probabilities) {
  const order = Object.entries(probabilities).sort((one, other) => other[1] - one[1]);
  const rows = order.slice(0, MOST_BARS).map(([label, probability], index) => {
    return element(
      "li",
      { class: index ? "ranking-row" : "ranking-row first" },
      element("span", { class: "ranking-label" }, label),
      meter(probability),
      element("span", { class: "ranking-value" }, percent(probability)),
    );
  });
  const list = element("ol", { class: "ranking" }, ...rows);
  if (order.length <= MOST_BARS) return list;
  const rest = `and ${order.length - MOST_BARS} less likely ones`;
  return element("div", {}, list, element("p", { class: "muted" }, rest));
}
