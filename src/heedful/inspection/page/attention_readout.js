// The chosen token, in words and numbers: what it attends to, and what attends to it.

import { element } from "./attention_elements.js";
import { shownWeight } from "./attention_document.js";

const SHOWN = 6;

// The largest of some weights, with their names; a number tells equal names apart. Bars are in proportion to the first,
// so that small weights can be compared.
export function weightList(names, weights) {
  const order = names.map((_, place) => place).sort((one, other) => weights[other] - weights[one]);
  const items = order
    .slice(0, SHOWN)
    .filter((place) => weights[place] > 0)
    .map((place) => {
      const fill = element("span", { class: "bar-fill" });
      fill.style.width = `${(100 * weights[place]) / weights[order[0]]}%`;
      return element(
        "li",
        { class: "bar" },
        element("span", { class: "bar-name", text: names[place] }, repeated(names, place)),
        element("span", { class: "bar-track", "aria-hidden": "true" }, fill),
        element("span", { class: "bar-value", text: shownWeight(weights[place]) }),
      );
    });
  return items.length ? element("ol", { class: "bars" }, ...items) : element("p", { class: "quiet", text: "nothing" });
}

function repeated(names, place) {
  const alone = names.indexOf(names[place]) === names.lastIndexOf(names[place]);
  return alone ? null : element("sub", { text: String(place + 1) });
}

export class Readout {
  constructor(selection) {
    this.selection = selection;
    this.headline = element("p", { class: "readout-line", "aria-live": "polite" });
    this.lists = element("div", { class: "readout-lists" });
    this.aside = element("div", { class: "readout" }, this.headline, this.lists);
    selection.watch(["cell"], () => this.sheet && this.draw());
  }

  show(sheet) {
    this.sheet = sheet;
    this.draw();
  }

  draw() {
    const { queries, keys, values, square } = this.sheet;
    const { query, key } = this.selection.state.cell ?? {};
    this.lists.replaceChildren();
    if (query === undefined && key === undefined) {
      this.headline.textContent = "Point at a token, or go to it by keyboard, to see what it attends to.";
      return;
    }
    this.headline.replaceChildren(...this.pair(query, key));
    const looking = query ?? (square ? key : undefined);
    const looked = key ?? (square ? query : undefined);
    if (looking !== undefined) {
      const row = values.subarray(looking * keys.length, (looking + 1) * keys.length);
      this.list(`“${queries[looking]}” attends to`, keys, row);
    }
    if (looked !== undefined) {
      const column = queries.map((_, place) => values[place * keys.length + looked]);
      this.list(`“${keys[looked]}” is attended to by`, queries, column);
    }
  }

  pair(query, key) {
    const { queries, keys, values } = this.sheet;
    if (query === undefined) return [`“${keys[key]}”`];
    if (key === undefined) return [`“${queries[query]}”`];
    const weight = values[query * keys.length + key];
    const number = element("strong", { class: "readout-weight", text: shownWeight(weight) });
    return [`“${queries[query]}” to “${keys[key]}”: `, number];
  }

  list(title, names, weights) {
    this.lists.append(element("div", {}, element("h3", { text: title }), weightList(names, weights)));
  }
}
