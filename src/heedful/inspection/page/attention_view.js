// The attention view: what a model answered, all its heads as small maps, and one of them in detail.

import { choice, element } from "./attention_elements.js";
import { AttentionDocument, MEAN, ROLLOUT, numberOfHeads } from "./attention_document.js";
import { Selection } from "./attention_selection.js";
import { outputsPanel } from "./attention_outputs.js";
import { Overview } from "./attention_overview.js";
import { Detail } from "./attention_detail.js";
import { ALL_PATCHES } from "./attention_image.js";
import { followPage } from "./page_changes.js";

const NOTES = [
  ["Weights", "are the exact ones of this input, to three significant digits; each row of a matrix adds up to 1."],
  [
    "Colour",
    "is on a square-root scale, from nothing to the largest weight in a map: a quarter of that weight takes half of the scale. " +
      "Each head of a layer has its own hue; means of heads and rollouts use all hues.",
  ],
  ["Entropy", "is in nats, averaged over queries: 0 means a single token, larger values many."],
  [
    "Distance",
    "is how far a head looks on average: in tokens, or in patches of an image; in cross-attention, how far from the " +
      "diagonal, in source tokens.",
  ],
  [
    "Rollout",
    "multiplies the layers (Abnar and Zuidema, 2020): how much of each input is in a position after the last layer. " +
      "In cross-attention, the remainder to 1 is the share of the output itself.",
  ],
];

// Show an attention document in an element, replacing its content.
export function showAttention(container, attentionDocument) {
  const attention = new AttentionDocument(attentionDocument);
  const view = element("div", { class: "attention-view" });
  container.replaceChildren(view);
  // For an encoder-decoder, most people want to see what the output took from the source.
  const kind = attention.kinds.includes("cross") ? "cross" : attention.kinds[0];
  const selection = new Selection({
    kind,
    ...startOf(attention, kind),
    cell: null,
    style: attention.image ? "image" : "matrix",
    query: attention.image?.extra ? 0 : ALL_PATCHES,
    reverse: false,
  });
  const overview = new Overview(attention, selection, view);
  const detail = new Detail(attention, selection, view);
  overview.grid.addEventListener("click", () => detail.bringIntoView());
  const found = element("div", { class: "found" }, outputsPanel(attention), overview.panel);
  // Where there is room for only one column, the image comes first.
  const columns = attention.image ? [detail.panel, found] : [found, detail.panel];
  view.append(
    ...(attention.kinds.length > 1 ? [kindChoice(attention, selection)] : []),
    element("div", { class: "columns" }, ...columns),
    notes(),
  );
  followPage(view, () => {
    overview.drawAgain();
    detail.show();
  });
  Promise.all([detail.show(), overview.firstDrawn]).then(() => performance.mark("attention-painted"));
}

// What is shown first: for an image the rollout, otherwise the last layer.
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
