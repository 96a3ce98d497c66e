// A small card next to a word: what else could stand there.

import { button, element } from "./dom.js";
import { choiceButton } from "./panes.js";
import { rove } from "./roving.js";

let open = null;

/**
 * Open the card next to `anchor`; it is filled when `found`, a promise of [{text, probability}], is there.
 * `current` is the text that stands there now, `pick(choice)` is called once.
 */
export function openChoices(anchor, { title, found, current, pick, onclose, own }) {
  closeChoices(false);
  const waiting = element("p", { class: "muted" }, "Looking …");
  const list = element("div", { class: "choice-list", "aria-live": "polite" }, waiting);
  const card = element(
    "div",
    { class: "choices", role: "dialog", "aria-label": title },
    element("div", { class: "choices-head" }, element("strong", {}, title), closeButton()),
    list,
  );
  const take = (choice) => {
    closeChoices(true);
    pick(choice);
  };
  if (own) card.append(ownField(take));
  document.body.append(card);
  place(card, anchor);
  open = { card, anchor, onclose };
  anchor.setAttribute("aria-expanded", "true");
  card.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeChoices(true);
  });
  found.then(
    (choices) => fill(card, list, choices, current, take),
    (error) => list.replaceChildren(element("p", { class: "muted" }, error.message)),
  );
}

/** Close the card that is open, if one is. */
export function closeChoices(returnFocus) {
  if (open === null) return;
  const { card, anchor, onclose } = open;
  open = null;
  card.remove();
  anchor.removeAttribute("aria-expanded");
  if (returnFocus && anchor.isConnected) anchor.focus();
  onclose?.();
}

document.addEventListener("pointerdown", (event) => {
  if (open && !open.card.contains(event.target) && !open.anchor.contains(event.target)) closeChoices(false);
});
window.addEventListener("resize", () => open && place(open.card, open.anchor));

function closeButton() {
  return button("×", () => closeChoices(true), { class: "quiet close", "aria-label": "Close" });
}

function fill(card, list, choices, current, take) {
  if (open?.card !== card) return;
  const highest = Math.max(...choices.map((each) => each.probability), 1e-9);
  const rows = choices.map((each) => {
    const properties = { "aria-current": each.text.trim() === current.trim() ? "true" : null };
    return choiceButton(visible(each.text), each.probability, highest, () => take(each), properties);
  });
  list.replaceChildren(...(rows.length ? rows : [element("p", { class: "muted" }, "Nothing else is likely here.")]));
  rove(list, "button").mend();
  if (card.contains(document.activeElement) || document.activeElement === open.anchor) rows[0]?.focus();
  place(card, open.anchor);
}

/** A token made visible: white space gets a sign. */
export function visible(text) {
  return text.trim() || text.replaceAll("\n", "↵").replaceAll("\t", "⇥").replaceAll(" ", "␣") || "(nothing)";
}

function ownField(take) {
  const input = element("input", { type: "text", "aria-label": "A word of your own", placeholder: "or your own" });
  const form = element("form", { class: "own" }, input, element("button", { type: "submit", class: "small" }, "Use"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (input.value.trim()) take({ text: input.value.trim(), own: true });
  });
  return form;
}

function place(card, anchor) {
  const margin = 8;
  const box = anchor.getBoundingClientRect();
  const left = Math.min(box.left, document.documentElement.clientWidth - card.offsetWidth - margin);
  card.style.left = `${Math.max(margin, left) + window.scrollX}px`;
  card.style.top = `${box.bottom + window.scrollY + 6}px`;
}
