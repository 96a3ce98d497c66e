// A drawing of the actual architecture: embeddings, blocks, norms and the head; each can be opened.

import { element, roving } from "./attention_elements.js";

export function drawing({ explained, state }) {
  const columns = explained.columns().map((column) => drawnColumn(explained, state, column));
  const nav = element("nav", { class: "explain-drawing", "aria-label": "Architecture" }, ...columns);
  if (columns.length > 1) nav.classList.add("has-two");
  state.watch(["part"], () => mark(nav, state.values.part));
  mark(nav, state.values.part);
  roving(nav, "button");
  return nav;
}

function drawnColumn(explained, state, { name, title, parts }) {
  const blocks = new Set(parts.filter((part) => part.block).map((part) => part.name.split(".").slice(0, 2).join("."))).size;
  const heading = element("h2", {}, title, element("span", { text: ` ${blocks} ${blocks === 1 ? "block" : "blocks"}` }));
  const boxes = parts.map((part) => box(explained, state, part));
  const bridge = name === "encoder" ? element("p", { class: "explain-bridge", text: "keys and values of every decoder block" }) : null;
  return element("section", { class: "explain-column", "data-column": name }, heading, ...boxes, bridge);
}

function box(explained, state, part) {
  const button = element(
    "button",
    { type: "button", class: part.block ? "explain-box is-block" : "explain-box", "data-part": part.name,
      on: { click: () => state.change({ part: part.name }) } },
    element("span", { class: "explain-box-title", text: part.title }),
    part.block ? element("span", { class: "explain-layers" }, ...sublayers(explained, part)) : null,
  );
  return button;
}

// Sub-layers in their order, with the norm where it really is.
function sublayers(explained, part) {
  const pre = explained.plain.norm === "pre";
  return part.groups.flatMap((group) => {
    const heads = group.steps.find((step) => step.letters === "HTV");
    const inner = group.steps.find((step) => step.name.endsWith(".inner"));
    const size = heads ? ` · ${heads.shape[0]} heads of ${heads.shape[2]}` : inner ? ` · ${inner.shape[1]} wide` : "";
    const layer = element("span", { class: heads ? "explain-layer attends" : "explain-layer", text: group.title + size });
    const [norm, add] = [element("span", { class: "explain-layer norm", text: "Norm" }), element("span", { class: "explain-layer add", text: "+" })];
    return pre ? [norm, layer, add] : [layer, add, norm];
  });
}

function mark(nav, chosen) {
  for (const button of nav.querySelectorAll("button")) {
    const pressed = button.dataset.part === chosen;
    button.setAttribute("aria-pressed", String(pressed));
    if (pressed && nav.scrollHeight > nav.clientHeight) {
      nav.scrollTop = Math.max(0, button.offsetTop - nav.clientHeight / 3);
    }
  }
}
