// All layers and heads of one kind as small maps, one hue per head, drawn when they come into view.

import { element, picker, roving } from "./attention_elements.js";
import { MEAN, ROLLOUT, numberOfHeads } from "./attention_document.js";
import { huesOf, isDark, paintWeights } from "./attention_colours.js";
import { heatOfQuery } from "./attention_image.js";

const ORDERS = {
  layer: { text: "layer and head" },
  focused: { text: "entropy, most focused first", measure: "entropy", sign: 1 },
  spread: { text: "entropy, most spread first", measure: "entropy", sign: -1 },
  near: { text: "distance, nearest first", measure: "mean_distance", sign: 1 },
  far: { text: "distance, farthest first", measure: "mean_distance", sign: -1 },
};

const ROLLOUT_NOTE =
  "Rollout: how much of each input is in each position after all layers. Colours go from no weight to the largest of " +
  "each map.";
const MEASURES_NOTE = " Below each head: entropy · distance.";

export class Overview {
  constructor(attention, selection, view) {
    this.attention = attention;
    this.selection = selection;
    this.view = view;
    this.order = "layer";
    this.grid = element("div", { class: "tiles", role: "group", "aria-label": "Heads" });
    const orders = Object.entries(ORDERS).map(([value, { text }]) => ({ value, text }));
    const sort = picker("Sort by", orders, this.order, (order) => {
      this.order = order;
      this.build();
    });
    this.count = element("p", { class: "quiet" });
    this.panel = element(
      "section",
      { class: "panel overview", "aria-label": "Overview of all heads" },
      element("div", { class: "panel-head" }, element("h2", { text: "All heads" }), this.count, sort),
      this.grid,
    );
    // Drawn slightly ahead, so that maps are ready when they scroll into view.
    this.firstDrawn = new Promise((resolve) => {
      const seen = (entries) => this.drawSeen(entries).then(resolve);
      this.observer = new IntersectionObserver(seen, { rootMargin: "60px" });
    });
    selection.watch(["kind"], () => this.build());
    selection.watch(["layer", "head"], () => this.mark());
    if (attention.image) selection.watch(["query", "reverse"], () => this.drawAgain());
    this.build();
  }

  build() {
    const { kind } = this.selection.state;
    const maps = this.attention.maps(kind);
    this.observer.disconnect();
    this.tiles = [];
    const order = ORDERS[this.order];
    const heads = maps.reduce((sum, map) => sum + numberOfHeads(map), 0);
    const counted = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;
    this.count.textContent = `${counted(maps.length, "layer")}, ${counted(heads, "head")}`;
    const whole = this.attention.rollout(kind) ? [this.tile({ kind, layer: null, head: ROLLOUT }, "rollout")] : [];
    if (order.measure) this.grid.replaceChildren(this.row(null, [...whole, ...this.sorted(maps, order)]));
    else {
      const rows = maps.map((map) => {
        const tiles = Array.from({ length: numberOfHeads(map) }, (_, head) => this.headTile(map, head, `H${head + 1}`));
        if (tiles.length > 1) tiles.push(this.tile({ kind, layer: map.layer, head: MEAN }, "mean"));
        return this.row(`Layer ${map.layer + 1}`, tiles);
      });
      if (whole.length) rows.unshift(this.row("All layers", [...whole, note()]));
      this.grid.replaceChildren(...rows);
    }
    this.mark();
    roving(this.grid, ".tile");
    for (const tile of this.tiles) this.observer.observe(tile.button);
  }

  sorted(maps, { measure, sign }) {
    const places = maps.flatMap((map) => map[measure].map((value, head) => ({ map, head, value })));
    places.sort((one, other) => sign * (one.value - other.value));
    return places.map(({ map, head }) => this.headTile(map, head, `L${map.layer + 1} H${head + 1}`));
  }

  row(title, tiles) {
    const heading = title ? element("h3", { class: "row-title", text: title }) : null;
    const row = element("div", { class: "row-tiles" }, ...tiles);
    row.style.setProperty("--tiles", Math.max(...this.attention.plain.maps.map(numberOfHeads)) + 1);
    return element("div", { class: "tile-row" }, heading, row);
  }

  headTile(map, head, caption) {
    const place = { kind: map.kind, layer: map.layer, head };
    const { entropy, distance } = this.attention.measures(place);
    return this.tile(place, caption, `${entropy}\u200a·\u200a${distance}`, `entropy ${entropy} nats, mean distance ${distance}`);
  }

  tile(place, caption, measures = "", spoken = "") {
    const canvas = element("canvas", { width: 1, height: 1, "aria-hidden": "true" });
    const title = this.attention.title(place);
    const button = element(
      "button",
      {
        type: "button",
        class: "tile",
        title: spoken ? `${title}: ${spoken}` : title,
        "aria-label": spoken ? `${title}: ${spoken}` : title,
        on: { click: () => this.selection.change({ layer: place.layer, head: place.head }) },
      },
      canvas,
      element("span", { class: "tile-name", text: caption }),
      measures ? element("span", { class: "tile-measures", text: measures }) : null,
    );
    this.tiles.push({ place, button, canvas });
    return button;
  }

  mark() {
    const { layer, head } = this.selection.state;
    for (const { place, button } of this.tiles) {
      button.setAttribute("aria-pressed", String(place.layer === layer && place.head === head));
    }
  }

  drawAgain() {
    this.observer.disconnect();
    for (const tile of this.tiles) this.observer.observe(tile.button);
  }

  async drawSeen(entries) {
    const seen = new Set(entries.filter((each) => each.isIntersecting).map((each) => each.target));
    for (const button of seen) this.observer.unobserve(button);
    await Promise.all(this.tiles.filter(({ button }) => seen.has(button)).map((tile) => this.draw(tile)));
  }

  async draw({ place, canvas }) {
    const sheet = await this.attention.sheet(place);
    const { image } = this.attention;
    const [hues, dark] = [huesOf(place.head), isDark(this.view)];
    if (!image) {
      paintWeights(canvas, sheet.values, sheet.largest, [sheet.queries.length, sheet.keys.length], hues, dark);
      return;
    }
    const { query, reverse } = this.selection.state;
    const { values, largest } = heatOfQuery(sheet, image, query, reverse);
    paintWeights(canvas, values, largest, image.grid, hues, dark);
  }
}

function note() {
  const measures = element("span", { class: "tile-measures-note", text: MEASURES_NOTE });
  return element("p", { class: "quiet tile-note", text: ROLLOUT_NOTE }, measures);
}
