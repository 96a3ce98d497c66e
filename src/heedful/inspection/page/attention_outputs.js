// What the model answered: its tokens with their probabilities, and the runners-up of the chosen one.

import { element, roving } from "./attention_elements.js";
import { shownToken } from "./attention_document.js";

function percent(share) {
  if (share >= 0.9995) return "100 %";
  return share >= 0.0995 ? `${(share * 100).toFixed(0)} %` : `${Number((share * 100).toPrecision(2))} %`;
}

function bar(token, share, chosen) {
  const fill = element("span", { class: "bar-fill" });
  fill.style.width = `${share * 100}%`;
  return element(
    "li",
    { class: chosen ? "bar bar-chosen" : "bar" },
    element("span", { class: "bar-name", text: shownToken(token) }),
    element("span", { class: "bar-track", "aria-hidden": "true" }, fill),
    element("span", { class: "bar-value", text: percent(share) }),
  );
}

function ranking(output) {
  const all = [{ ...output, chosen: true }, ...output.runners_up];
  all.sort((one, other) => other.probability - one.probability);
  return all.map((each) => bar(each.token, each.probability, each.chosen));
}

// The word that a tag or a filled mask belongs to, where the answer itself is not in the sequence.
function about(attention, { place, token }) {
  if (!place) return "";
  const label = attention.plain.sequences[place.sequence][place.position];
  return label === token ? "" : `${shownToken(label)} → `;
}

// The panel with all answers, or null where the document has none.
export function outputsPanel(attention) {
  const { outputs } = attention;
  if (!outputs.length) return null;
  const list = element("ol", { class: "bars", "aria-live": "polite" });
  const heading = element("p", { class: "outputs-heading" });
  const chips = outputs.map((output, number) => {
    const chip = element(
      "button",
      {
        type: "button",
        class: "chip",
        "aria-pressed": "false",
        "aria-label": `${about(attention, output)}${shownToken(output.token)}, ${percent(output.probability)}`,
        on: { click: () => show(number), focus: () => show(number), pointerenter: () => show(number) },
      },
      element("span", { class: "chip-token", text: `${about(attention, output)}${shownToken(output.token)}` }),
      element("span", { class: "chip-share", text: percent(output.probability) }),
    );
    chip.style.setProperty("--share", output.probability);
    return chip;
  });

  function show(number) {
    chips.forEach((chip, each) => chip.setAttribute("aria-pressed", String(each === number)));
    heading.textContent = `“${shownToken(outputs[number].token)}” and its runners-up`;
    list.replaceChildren(...ranking(outputs[number]));
  }

  const row = element("div", { class: "chips", role: "group", "aria-label": "Output tokens" }, ...chips);
  const alone = outputs.length === 1;
  // The least certain token is shown first.
  const shares = outputs.map((output) => output.probability);
  show(shares.indexOf(Math.min(...shares)));
  roving(row, ".chip");
  return element(
    "section",
    { class: "panel outputs", "aria-label": "Output" },
    element("h2", { text: "Output" }),
    alone ? null : row,
    alone ? null : heading,
    list,
  );
}
