// One head as lines: queries on the left, keys on the right; the larger the weight, the stronger the line.

import { element, roving } from "./attention_elements.js";
import { huesOf, inkOf, isDark, strength } from "./attention_colours.js";

const ROW = 26;
// Fainter lines could not be seen; 0.004 of the largest weight gives 0.06.
const FAINTEST = 0.06;
// While one token is looked at, the lines of the others are this strong.
const BACKGROUND = 0.1;

export class Lines {
  constructor(selection, view) {
    this.selection = selection;
    this.view = view;
    this.canvas = element("canvas", { class: "line-canvas", "aria-hidden": "true" });
    this.left = element("ul", { class: "line-tokens line-queries", "aria-label": "Queries" });
    this.right = element("ul", { class: "line-tokens line-keys", "aria-label": "Keys" });
    this.panel = element("div", { class: "lines" }, this.left, this.canvas, this.right);
    selection.watch(["cell"], () => this.sheet && this.panel.isConnected && this.draw());
  }

  show(sheet) {
    const same = this.sheet?.queries.join("\n") === sheet.queries.join("\n");
    this.sheet = sheet;
    if (!same || !this.left.children.length) {
      this.left.replaceChildren(...sheet.queries.map((name, place) => this.token(name, { query: place })));
      this.right.replaceChildren(...sheet.keys.map((name, place) => this.token(name, { key: place })));
      roving(this.left, ".line-token");
      roving(this.right, ".line-token");
    }
    this.draw();
  }

  token(name, cell) {
    const choose = () => this.selection.change({ cell });
    const on = { pointerenter: choose, focus: choose, click: choose };
    return element("li", {}, element("button", { type: "button", class: "line-token", text: name, title: name, on }));
  }

  draw() {
    const { queries, keys, values, largest } = this.sheet;
    const cell = this.selection.state.cell ?? {};
    const [hues, dark] = [huesOf(this.sheet.head), isDark(this.view)];
    const width = this.canvas.clientWidth || 160;
    const height = Math.max(queries.length, keys.length) * ROW;
    const ratio = Math.min(window.devicePixelRatio || 1, 16000 / height);
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const anyChosen = cell.query !== undefined || cell.key !== undefined;
    for (let query = 0; query < queries.length; query += 1) {
      for (let key = 0; key < keys.length; key += 1) {
        const chosen = cell.query === query || cell.key === key;
        const share = strength(values[query * keys.length + key], largest);
        const shown = anyChosen && !chosen ? share * BACKGROUND : share;
        if (shown >= FAINTEST) this.line(context, width, query, key, inkOf(hues, dark, shown), chosen);
      }
    }
    this.shade(cell, (opacity) => inkOf(hues, dark, opacity));
  }

  line(context, width, query, key, colour, chosen) {
    const [from, to] = [(query + 0.5) * ROW, (key + 0.5) * ROW];
    context.strokeStyle = colour;
    context.lineWidth = chosen ? 2.5 : 1.5;
    context.beginPath();
    context.moveTo(0, from);
    context.bezierCurveTo(width / 2, from, width / 2, to, width, to);
    context.stroke();
  }

  // Shade the tokens that the chosen one looks at, or that look at it, by their weights.
  shade(cell, ink) {
    const { queries, keys, values, largest } = this.sheet;
    const paint = (list, weightOf, own) => {
      [...list.children].forEach(({ firstChild: button }, place) => {
        button.classList.toggle("line-chosen", own === place);
        const weight = weightOf(place);
        button.style.backgroundColor = weight > 0 ? ink(0.6 * strength(weight, largest)) : "";
      });
    };
    const { query, key } = cell;
    paint(this.right, (place) => (query === undefined ? 0 : values[query * keys.length + place]), key);
    paint(this.left, (place) => (key === undefined ? 0 : values[place * keys.length + key]), query);
  }
}
