// One head, the mean of a layer's heads, or the rollout: as a matrix, as lines or over an image, with its weights.

import { choice, element, picker } from "./attention_elements.js";
import { MEAN, ROLLOUT, numberOfHeads } from "./attention_document.js";
import { IMAGE_HUES, huesOf, inkOf, isDark } from "./attention_colours.js";
import { Matrix } from "./attention_matrix.js";
import { Lines } from "./attention_lines.js";
import { ImageView } from "./attention_image.js";
import { Legend } from "./attention_legend.js";
import { Readout } from "./attention_readout.js";

const STYLE_NAMES = { image: "Image", matrix: "Matrix", lines: "Lines" };

export class Detail {
  constructor(attention, selection, view) {
    this.attention = attention;
    this.selection = selection;
    this.view = view;
    this.legend = new Legend();
    this.readout = new Readout(selection);
    const matrix = new Matrix(selection, view);
    this.styles = attention.image
      ? { image: new ImageView(attention, selection, this.legend), matrix }
      : { matrix, lines: new Lines(selection, view) };
    this.title = element("h2", { "aria-live": "polite" });
    this.measures = element("p", { class: "quiet" });
    this.tools = element("div", { class: "tools" });
    this.body = element("div", { class: "detail-body" });
    this.turn = 0;
    this.panel = element(
      "section",
      { class: "panel detail", "aria-label": "One head in detail" },
      element("div", { class: "panel-head" }, this.title, this.measures, this.tools),
      this.body,
    );
    selection.watch(["kind", "layer", "head", "style"], () => this.show());
  }

  buildTools() {
    const { kind, layer, head, style } = this.selection.state;
    const maps = this.attention.maps(kind);
    const layers = maps.map((map) => ({ value: map.layer, text: String(map.layer + 1) }));
    if (this.attention.rollout(kind)) layers.push({ value: ROLLOUT, text: "rollout of all" });
    const onLayer = (value) =>
      this.selection.change(
        value === ROLLOUT ? { layer: null, head: ROLLOUT } : { layer: Number(value), head: head === ROLLOUT ? MEAN : head },
      );
    const tools = [picker("Layer", layers, head === ROLLOUT ? ROLLOUT : layer, onLayer)];
    if (head !== ROLLOUT) {
      const count = numberOfHeads(this.attention.map(kind, layer));
      const heads = Array.from({ length: count }, (_, value) => ({ value, text: String(value + 1) }));
      if (count > 1) heads.unshift({ value: MEAN, text: "mean of all" });
      tools.push(
        picker("Head", heads, head, (value) => this.selection.change({ head: value === MEAN ? MEAN : Number(value) })),
      );
    }
    const styles = Object.keys(this.styles).map((value) => ({ value, text: STYLE_NAMES[value] }));
    tools.push(choice("View", styles, style, (value) => this.selection.change({ style: value, cell: null })));
    keepingFocus(this.tools, tools);
  }

  async show() {
    const turn = (this.turn += 1);
    const { state } = this.selection;
    this.title.textContent = this.attention.title(state);
    const measures = this.attention.measures(state);
    this.measures.textContent = measures ? `entropy ${measures.entropy} nats, mean distance ${measures.distance}` : "";
    this.buildTools();
    const sheet = await this.attention.sheet(state);
    if (turn !== this.turn) return; // another one was chosen in the meantime
    const shown = this.styles[state.style];
    const { aside } = state.style === "image" ? shown : this.readout;
    const [hues, dark] = [state.style === "image" ? IMAGE_HUES : huesOf(state.head), isDark(this.view)];
    if (this.body.firstChild !== shown.panel) {
      this.body.className = `detail-body detail-${state.style}`;
      this.body.replaceChildren(shown.panel, element("div", { class: "detail-aside" }, this.legend.panel, aside));
    }
    this.body.style.setProperty("--bar", inkOf(hues, dark));
    this.legend.show(sheet.largest, hues, dark);
    shown.show(sheet, this.attention.title(state));
    this.readout.show(sheet);
  }

  // Where the page has one column, the detail may be out of sight after a choice in the overview.
  bringIntoView() {
    const { top, bottom } = this.title.getBoundingClientRect();
    if (top < 0 || bottom > window.innerHeight) this.panel.scrollIntoView({ block: "start" });
  }
}

// Replace controls by new ones, and move the focus to the one at the place of the one that had it.
function keepingFocus(container, controls) {
  const inputs = () => [...container.querySelectorAll("input, select")];
  const place = inputs().indexOf(document.activeElement);
  container.replaceChildren(...controls);
  if (place >= 0) inputs()[Math.min(place, inputs().length - 1)].focus();
}
