// Attention over an image: what a patch, the class token or all patches together look at, as a heat map.

import { choice, element } from "./attention_elements.js";
import { IMAGE_HUES, paintWeights } from "./attention_colours.js";
import { weightList } from "./attention_readout.js";

const LARGEST_STAGE = 520;

// The query that stands for the mean over all patches.
export const ALL_PATCHES = "all";

// The weights of all patches as a query sees them; or, reversed, the weights with which the patches look at it.
export function heatOfQuery(sheet, image, query, reverse) {
  const { extra } = image;
  const count = sheet.keys.length;
  const patches = count - extra;
  const values = new Float32Array(patches);
  const chosen = query === ALL_PATCHES ? Array.from({ length: patches }, (_, place) => extra + place) : [query];
  for (const one of chosen) {
    for (let place = 0; place < patches; place += 1) {
      const other = extra + place;
      values[place] += sheet.values[reverse ? other * count + one : one * count + other] / chosen.length;
    }
  }
  return { values, largest: Math.max(...values) };
}

export class ImageView {
  constructor(attention, selection, legend) {
    this.image = attention.image;
    this.legend = legend;
    this.selection = selection;
    const [height, width] = this.image.size;
    this.zoom = Math.min(LARGEST_STAGE / width, LARGEST_STAGE / height);
    this.picture = element("img", { class: "stage-image", alt: "The image as the model saw it", src: this.image.data });
    if (this.zoom > 2) this.picture.classList.add("stage-pixels");
    this.heat = element("canvas", { class: "stage-heat", "aria-hidden": "true" });
    this.marker = element("div", { class: "stage-marker", "aria-hidden": "true" });
    this.panel = element(
      "div",
      {
        class: "stage",
        tabindex: "0",
        role: "application",
        "aria-label": "Image: choose a patch by clicking, or with the arrow keys",
        on: { click: (event) => this.point(event), keydown: (event) => this.step(event) },
      },
      this.picture,
      this.heat,
      this.marker,
    );
    this.panel.style.aspectRatio = `${width} / ${height}`;
    // The image should fit on the screen together with what is above it.
    this.panel.style.maxWidth = `min(${width * this.zoom}px, ${width / height} * max(14rem, 100vh - 15rem))`;
    this.place();
    this.controls = element("div", { class: "stage-controls" });
    this.list = element("div", { class: "readout", "aria-live": "polite" });
        this.aside = element("div", {}, this.controls, this.list);
    this.buildControls();
    selection.watch(["query", "reverse"], () => {
      this.buildControls();
      if (this.sheet) this.draw();
    });
  }

  // The grid may extend beyond the image: heat covers whole patches.
  place() {
    const { grid, size, patch } = this.image;
    this.heat.style.height = `${(100 * grid[0] * patch[0]) / size[0]}%`;
    this.heat.style.width = `${(100 * grid[1] * patch[1]) / size[1]}%`;
  }

  buildControls() {
    const { query, reverse } = this.selection.state;
    const options = [{ value: ALL_PATCHES, text: "all patches" }];
    if (this.image.extra) options.unshift({ value: "0", text: "class token" });
    const isPatch = query !== ALL_PATCHES && query >= this.image.extra;
    if (isPatch) options.push({ value: String(query), text: this.name(query) });
    const of = choice("Attention of", options, String(query), (value) =>
      this.selection.change({ query: value === ALL_PATCHES ? value : Number(value) }),
    );
    const directions = [
      { value: "to", text: "what it attends to" },
      { value: "by", text: "what attends to it" },
    ];
    const direction = choice("Show", directions, reverse ? "by" : "to", (value) =>
      this.selection.change({ reverse: value === "by" }),
    );
    const focused = this.controls.contains(document.activeElement) ? document.activeElement.value : null;
    this.controls.replaceChildren(of, direction, element("p", { class: "quiet", text: "Click a patch to look from there." }));
    if (focused !== null) this.controls.querySelector(`input[value="${focused}"]`)?.focus();
  }

  name(query) {
    const place = query - this.image.extra;
    const columns = this.image.grid[1];
    return `row ${Math.floor(place / columns) + 1}, column ${(place % columns) + 1}`;
  }

  show(sheet) {
    this.sheet = sheet;
    this.draw();
  }

  draw() {
    const { query, reverse } = this.selection.state;
    const { values, largest } = heatOfQuery(this.sheet, this.image, query, reverse);
    paintWeights(this.heat, values, largest, this.image.grid, IMAGE_HUES, false);
    this.legend.show(largest, IMAGE_HUES, false);
    const names = Array.from(values, (_, place) => this.name(this.image.extra + place));
    const title = reverse ? "Attended to most by" : "Attends most to";
    this.list.replaceChildren(element("h3", { text: title }), weightList(names, values));
    const { grid, extra, size, patch } = this.image;
    const chosen = query !== ALL_PATCHES && query >= extra;
    this.marker.hidden = !chosen;
    if (!chosen) return;
    const [row, column] = [Math.floor((query - extra) / grid[1]), (query - extra) % grid[1]];
    this.marker.style.top = `${(100 * row * patch[0]) / size[0]}%`;
    this.marker.style.left = `${(100 * column * patch[1]) / size[1]}%`;
    this.marker.style.height = `${(100 * patch[0]) / size[0]}%`;
    this.marker.style.width = `${(100 * patch[1]) / size[1]}%`;
  }

  choose(row, column) {
    const { grid, extra } = this.image;
    if (row < 0 || column < 0 || row >= grid[0] || column >= grid[1]) return;
    this.selection.change({ query: extra + row * grid[1] + column });
  }

  point(event) {
    const box = this.heat.getBoundingClientRect();
    const { grid } = this.image;
    const row = Math.floor(((event.clientY - box.top) / box.height) * grid[0]);
    this.choose(row, Math.floor(((event.clientX - box.left) / box.width) * grid[1]));
  }

  step(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const { query } = this.selection.state;
    const { grid, extra } = this.image;
    const place = query === ALL_PATCHES || query < extra ? 0 : query - extra;
    this.choose(Math.floor(place / grid[1]) + move[0], (place % grid[1]) + move[1]);
  }
}
