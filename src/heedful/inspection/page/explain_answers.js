// The end of the computation: the largest logits, and the probabilities that the softmax makes from them.

import { element } from "./attention_elements.js";
import { readableNumber, readableToken } from "./explain_document.js";

export function answersOf({ explained, before, state }) {
  const rows = explained.plain.answers;
  const sequence = explained.plain.sequences.target ? "target" : "text";
  const list = element("ol", { class: "explain-bars explain-answers" });
  const show = () => {
    const place = rows.length === 1 ? 0 : state.place(explained, sequence);
    const earlier = new Map((before?.plain.answers[place] ?? []).map((each) => [each.token, each.probability]));
    const entries = (rows[place] ?? []).map((answer) => entry(answer, before ? (earlier.get(answer.token) ?? 0) : null));
    list.replaceChildren(...entries);
  };
  state.watch(["token", "step"], show);
  show();
  return element(
    "article",
    { class: "explain-step", "data-step": "probabilities", "aria-label": "Logits and probabilities" },
    element(
      "header",
      {},
      element("h3", { text: "Logits and probabilities" }),
      element("span", { class: "explain-formula", text: "softmax(x W + b)" }),
    ),
    element("p", {
      class: "explain-about",
      text: "A score for every answer, made into shares that sum to 1. The likeliest are listed, with their logits.",
    }),
    list,
  );
}

function entry({ token, logit, probability }, before) {
  const bar = element("span", { class: "explain-bar", "aria-hidden": "true" });
  bar.style.setProperty("--share", probability);
  if (before !== null) {
    bar.classList.add("has-before");
    bar.style.setProperty("--before", before);
  }
  const share = probability >= 0.0005 ? `${(100 * probability).toFixed(1)} %` : "< 0.1 %";
  return element(
    "li",
    {},
    element("span", { class: "explain-key", text: readableToken(token) }),
    bar,
    element("span", { class: "explain-value", text: share }),
    element("span", { class: "explain-logit", text: readableNumber(Number(logit.toFixed(3))) }),
  );
}
