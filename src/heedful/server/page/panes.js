// Parts that the workspaces are made of.

import { button, element, percent } from "./dom.js";

/** A part of a card: its title, its small tools, and what it holds. */
export function pane(name, title, tools, ...body) {
  const head = paneHead(element("h2", {}, title), ...tools);
  return element("section", { class: "pane", "aria-label": name }, head, ...body);
}

export function paneHead(title, ...tools) {
  return element("div", { class: "pane-head" }, title, element("div", { class: "pane-tools" }, ...tools));
}

/** A card with two panes, what is below it, and the attention panel. */
export function workspaceOf(panes, attention, ...tools) {
  return element(
    "div",
    { class: "stack" },
    ...panes,
    element("div", { class: "toolbar" }, attention.toggle, ...tools),
    attention.section,
  );
}

/** A share as a bar, hidden from screen readers: the number is next to it. */
export function meter(share) {
  const bar = element("span", { class: "meter", "aria-hidden": "true" });
  bar.style.setProperty("--share", share);
  return bar;
}

/** A text with its probability, as a button that takes it. */
export function choiceButton(text, probability, highest, take, properties = {}) {
  const row = button("", take, { class: "choice", ...properties });
  row.append(
    element("span", { class: "choice-text" }, text),
    meter(probability / highest),
    element("span", { class: "choice-value" }, percent(probability)),
  );
  return row;
}
