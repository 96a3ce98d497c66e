// The whole view: the drawing beside the steps of the open part, for one followed token.

import { element, picker } from "./attention_elements.js";
import { answersOf } from "./explain_answers.js";
import { drawing } from "./explain_drawing.js";
import { ANSWERS, ExplainDocument } from "./explain_document.js";
import { Player } from "./explain_player.js";
import { ExplainState } from "./explain_state.js";
import { StepCard } from "./explain_step.js";
import { SwitchPanel } from "./explain_switches.js";
import { followPage } from "./page_changes.js";

export function showExplanation(place, plain, { compute = null } = {}) {
  const first = new ExplainDocument(plain);
  const opened = first.parts.find((part) => part.block) ?? first.parts[0];
  const last = Math.max(0, first.tokens(first.plain.written ?? "").length - 1);
  const state = new ExplainState({ part: opened.name, head: 0, token: 0, step: last });
  const view = element("div", { class: "explain-view" });
  const stage = element("div", { class: "explain-stage" });
  const context = { explained: first, before: null, state, view };
  const switches = new SwitchPanel(context, compute, (next, changed) => {
    show({ explained: new ExplainDocument(next), before: changed ? first : null });
  });
  view.append(switches.panel, stage);
  place.replaceChildren(view);

  // Show everything below the switches, for a document that may replace an earlier one.
  function show(values) {
    state.forget();
    Object.assign(context, values);
    stage.replaceChildren(drawing(context), steps(context));
  }

  show({});
  followPage(view, () => state.change({ look: (state.values.look ?? 0) + 1 }));
}

function steps(context) {
  const { explained, state } = context;
  const player = new Player(context);
  const tools = element("div", { class: "explain-tools" });
  const title = element("h2", { class: "explain-open" });
  const list = element("div", { class: "explain-steps" });
  let cards = [];
  const open = () => {
    const part = explained.part(state.values.part);
    const column = { encoder: "Encoder, ", decoder: "Decoder, " }[part.column];
    title.textContent = column && part.block ? column + part.title.toLowerCase() : part.title;
    tools.replaceChildren(title, ...headPicker(explained, state, part));
    let number = 0;
    cards = [];
    const sections = part.groups.map((group) => {
      const own = group.steps.map((step) => new StepCard(context, part, step, (number += 1)));
      cards.push(...own);
      const heading = group.title ? element("h2", { class: "explain-group", text: group.title }) : null;
      return element("section", { "aria-label": group.title || part.title }, heading, ...own.map((each) => each.card));
    });
    list.replaceChildren(...(part.name === ANSWERS ? [answersOf(context)] : sections));
    watchScreen(cards);
  };
  state.watch(["part"], open);
  state.watch(["head", "look"], () => cards.forEach((card) => card.turn && card.draw()));
  state.watch(["token", "step"], () => cards.forEach((card) => card.follow()));
  open();
  return element("div", { class: "explain-main" }, player.panel, tools, list);
}

function headPicker(explained, state, part) {
  const heads = explained.numberOfHeads(part);
  if (heads < 2) return [];
  const options = Array.from({ length: heads }, (_, head) => ({ value: head, text: `${head + 1} of ${heads}` }));
  return [picker("Head", options, state.values.head, (head) => state.change({ head: Number(head) }))];
}

// Only steps near the screen are unpacked and painted.
function watchScreen(cards) {
  const byElement = new Map(cards.map((card) => [card.card, card]));
  const observer = new IntersectionObserver(
    (entries) => {
      const near = entries.filter(({ isIntersecting }) => isIntersecting).map(({ target }) => target);
      for (const target of near) observer.unobserve(target);
      Promise.all(near.map((target) => byElement.get(target).draw())).then(() => performance.mark("explain-painted"));
    },
    { rootMargin: "600px" },
  );
  for (const card of byElement.keys()) observer.observe(card);
}
