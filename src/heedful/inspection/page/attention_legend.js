// The colour scale of the current map, with the weights that its colours stand for.

import { element } from "./attention_elements.js";
import { paintWeights, strength, weightAt } from "./attention_colours.js";
import { shownWeight } from "./attention_document.js";

const TICKS = [0.5, 0.2, 0.1, 0.02, 0.005, 0.001];
// Ticks closer together than this share of the scale would overlap.
const SMALLEST_GAP = 0.12;
const SCALE_STEPS = 128;

export class Legend {
  constructor() {
    this.canvas = element("canvas", { class: "map-legend-scale", "aria-hidden": "true" });
    this.ticks = element("div", { class: "map-legend-ticks", "aria-hidden": "true" });
    this.words = element("p", { class: "quiet" });
    const bar = element("div", { class: "map-legend-bar" }, this.canvas, this.ticks);
    this.panel = element("div", {}, bar, this.words);
  }

  show(largest, hues, dark) {
    const weights = Array.from({ length: SCALE_STEPS }, (_, step) => weightAt(step / (SCALE_STEPS - 1), largest));
    paintWeights(this.canvas, weights, largest, [1, SCALE_STEPS], hues, dark);
    this.ticks.replaceChildren(...shownTicks(largest).map((weight) => tick(weight, largest)));
    this.words.textContent = `Square-root scale, from no weight to ${shownWeight(largest)}, the largest here`;
  }
}

function shownTicks(largest) {
  const found = [largest];
  for (const weight of TICKS) {
    const [place, next] = [weight, found.at(-1)].map((each) => strength(each, largest));
    if (weight < largest && next - place >= SMALLEST_GAP && place >= SMALLEST_GAP) found.push(weight);
  }
  return [...found, 0];
}

function tick(weight, largest) {
  const made = element("span", { text: shownWeight(weight) });
  made.style.left = `${100 * strength(weight, largest)}%`;
  return made;
}
