// The attention view: what a model answered, all its heads as small maps, and one of them in detail.

import { choice, element, picker } from "./attention_elements.js";
import { AttentionDocument, MEAN, ROLLOUT, numberOfHeads } from "./attention_document.js";
import { Selection } from "./attention_selection.js";
import { showOutputs } from "./attention_outputs.js";
import { Overview } from "./attention_overview.js";
import { Matrix } from "./attention_matrix.js";
import { Lines } from "./attention_lines.js";
import { ALL_PATCHES, ImageView } from "./attention_image.js";
import { Readout } from "./attention_readout.js";

const NOTES = [
  ["Weights", "are the exact ones of this input, to three significant digits; each row of a matrix adds up to 1."],
  [
    "Colour",
    "is the root of a weight's share of the largest one in its map; over an image, heat goes from the smallest weight to " +
      "the largest.",
  ],
  ["Entropy", "is in nats, a mean over queries: 0 looks at a single token, larger values at many."],
  [
    "Distance",
    "is how far a head looks on average: in tokens, or in patches of an image; in cross-attention, how far from the " +
      "diagonal, in source tokens.",
  ],
  [
    "Rollout",
    "multiplies the layers (Abnar and Zuidema, 2020): how much of each input is in a position after the last layer. " +
      "Across from decoder to encoder, the remainder to 1 is the share of the output itself.",
  ],
];

// Show an attention document in an element, whatever is in there.
export function showAttention(container, attentionDocument) {
  const attention = new AttentionDocument(attentionDocument);
  const view = element("div", { class: "attention-view" });
  container.replaceChildren(view);
  // Of an encoder-decoder, what the output took from the source is what most people come for.
  const kind = attention.kinds.includes("cross") ? "cross" : attention.kinds[0];
  const selection = new Selection({
    kind,
    ...startOf(attention, kind),
    cell: null,
    style: attention.image ? "image" : "matrix",
    query: attention.image?.extra ? 0 : ALL_PATCHES,
    reverse: false,
  });
  showOutputs(view, attention);
  if (attention.kinds.length > 1) view.append(kindChoice(attention, selection));
  const overview = new Overview(attention, selection, view);
  const detail = new Detail(attention, selection, view);
  view.append(overview.panel, detail.panel, notes());
  followPage(view, () => {
    overview.drawAgain();
    detail.show();
  });
  Promise.all([detail.show(), overview.firstDrawn]).then(() => performance.mark("attention-painted"));
}

// What is seen first: over an image the rollout, else the last layer.
function startOf(attention, kind) {
  if (attention.image && attention.rollout(kind)) return { layer: null, head: ROLLOUT };
  const last = attention.maps(kind).at(-1);
  return { layer: last.layer, head: numberOfHeads(last) > 1 ? MEAN : 0 };
}

function kindChoice(attention, selection) {
  const options = attention.kinds.map((value) => ({ value, text: attention.kindName(value) }));
  return choice("Kind of attention", options, selection.state.kind, (kind) =>
    selection.change({ kind, ...startOf(attention, kind), cell: null }),
  );
}

function notes() {
  const terms = NOTES.flatMap(([term, text]) => [element("dt", { text: term }), element("dd", { text })]);
  return element(
    "details",
    { class: "notes" },
    element("summary", { text: "What the numbers mean" }),
    element("dl", {}, ...terms),
  );
}

// Draw again when the colours or the width change, for as long as the view is there.
function followPage(view, redraw) {
  const over = new AbortController();
  const changed = () => {
    if (view.isConnected) redraw();
    else over.abort();
  };
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", changed, { signal: over.signal });
  const theme = new MutationObserver(changed);
  theme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "class"] });
  let width = view.clientWidth;
  const size = new ResizeObserver(() => {
    if (view.isConnected && view.clientWidth === width) return;
    width = view.clientWidth;
    changed();
  });
  size.observe(view);
  over.signal.addEventListener("abort", () => [theme, size].forEach((observer) => observer.disconnect()));
}

// One head, or the mean of a layer's heads, or the rollout.
class Detail {
  constructor(attention, selection, view) {
    this.attention = attention;
    this.selection = selection;
    this.readout = new Readout(selection);
    this.styles = { matrix: new Matrix(selection, view), lines: new Lines(selection, view) };
    if (attention.image) this.styles = { image: new ImageView(attention, selection), matrix: this.styles.matrix };
    this.title = element("h2", { "aria-live": "polite" });
    this.tools = element("div", { class: "tools" });
    this.body = element("div", { class: "detail-body" });
    this.panel = element(
      "section",
      { class: "panel detail", "aria-label": "One head in detail" },
      element("div", { class: "panel-head" }, this.title, this.tools),
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
    const names = { image: "Image", matrix: "Matrix", lines: "Lines" };
    const styles = Object.keys(this.styles).map((value) => ({ value, text: names[value] }));
    tools.push(choice("View", styles, style, (value) => this.selection.change({ style: value, cell: null })));
    keepingFocus(this.tools, tools);
  }

  async show() {
    const { state } = this.selection;
    this.title.textContent = this.attention.title(state);
    this.buildTools();
    const sheet = await this.attention.sheet(state);
    if (this.selection.state.kind !== state.kind) return; // another one was chosen in the meantime
    const shown = this.styles[state.style];
    const parts = state.style === "image" ? [shown.panel] : [shown.panel, this.readout.panel];
    if (this.body.firstChild !== shown.panel) this.body.replaceChildren(...parts);
    shown.show(sheet, this.attention.title(state));
    if (state.style !== "image") this.readout.show(sheet);
  }
}

// Replace controls by new ones, and give the focus to the one that takes the place of that which had it.
function keepingFocus(container, controls) {
  const inputs = () => [...container.querySelectorAll("input, select")];
  const place = inputs().indexOf(document.activeElement);
  container.replaceChildren(...controls);
  if (place >= 0) inputs()[Math.min(place, inputs().length - 1)].focus();
}
