// Labels with their probabilities, as bars.

import { element, percent } from "./dom.js";

const MOST_BARS = 12;

/** Rows of {label: probability}, the likeliest first. */
export function bars(probabilities) {
  const ranking = Object.entries(probabilities).sort((one, other) => other[1] - one[1]);
  const rows = ranking.slice(0, MOST_BARS).map(([label, probability], index) => {
    const bar = element("span", { class: "meter", "aria-hidden": "true" });
    bar.style.setProperty("--share", probability);
    return element(
      "li",
      { class: index ? "bar-row" : "bar-row first" },
      element("span", { class: "bar-label" }, label),
      bar,
      element("span", { class: "bar-value" }, percent(probability)),
    );
  });
  const list = element("ol", { class: "bars" }, ...rows);
  if (ranking.length <= MOST_BARS) return list;
  return element("div", {}, list, element("p", { class: "muted" }, `and ${ranking.length - MOST_BARS} less likely ones`));
}
