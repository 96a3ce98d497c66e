// Workspaces with a text on the left and an answer on the right: classify, tag, fill, compare.

import { call, wasAborted } from "./api.js";
import { LookPanels } from "./look_panels.js";
import { ranking } from "./ranking.js";
import { announce, button, debounced, element, percent } from "./dom.js";
import { exportButtons } from "./exporting.js";
import { clearNotice, showError, showRemarks } from "./notice.js";
import { choiceButton, pane, workspaceOf } from "./panes.js";
import { SourceField } from "./source_field.js";

// By what a model gives: the body to send, or null while there is not enough text, and how the answer is drawn.
const KINDS = {
  text: {
    title: "Answer",
    body: (text) => (text.trim() ? { text } : null),
    draw: (answer) => [element("p", { class: "answer-text" }, answer.results[0].text)],
    say: (answer) => answer.results[0].text,
  },
  label: {
    title: "Label",
    body: (text, second) => (text.trim() ? { text: second ? [[text, second]] : text } : null),
    draw: (answer) => [ranking(answer.results[0].probabilities)],
    say: (answer) => `Label: ${answer.results[0].label}`,
  },
  spans: {
    title: "Tags",
    body: (text) => (text.trim() ? { text } : null),
    draw: (answer) => [tags(answer.results[0].words)],
    say: (answer) => answer.results[0].words.map((each) => `${each.word} ${each.tag}`).join(", "),
  },
  words: {
    title: "Guesses",
    body: (text) => (text.includes("[MASK]") ? { text } : null),
    draw: (answer, workspace) => answer.results[0].masks.map((guesses, index) => guessList(guesses, index, workspace)),
    say: (answer) => answer.results[0].masks.map((guesses) => guesses[0].token).join(", "),
  },
  vectors: {
    title: "Similarity",
    body: (text) => (linesOf(text).length > 1 ? { text: linesOf(text) } : null),
    draw: (answer, workspace) => [similarities(linesOf(workspace.source.value), answer.vectors)],
    say: () => "Compared.",
  },
};

export class AnswerWorkspace {
  /** Whether there is a way to draw what the model gives. */
  static shows(model) {
    return model.gives in KINDS;
  }

  constructor(model) {
    this.model = model;
    this.kind = KINDS[model.gives];
    this.path = `/api/${model.verbs[0]}`;
    this.answer = null;
    this.controller = null;
    this.askSoon = debounced(() => this.ask(), 300);
    this.attention = new LookPanels(model, (signal) => this.loadAttention(signal), () => this.followed());
    this.attention.toggle.hidden = !model.verbs.includes("attention");
    const oninput = () => {
      clearNotice("error");
      this.askSoon();
    };
    this.source = new SourceField({ label: "Text", placeholder: model.placeholder, oninput });
    const placeholder = "A second text, if the model is to judge a pair";
    this.second = model.pairs ? new SourceField({ label: "Second text", placeholder, oninput }) : null;
    const fields = [this.source, this.second].filter((field) => field).map((field) => field.element);
    this.output = element("div", { class: "answer" }, this.empty());
    const tools = exportButtons(() => JSON.stringify(this.answer, null, 2), `${this.kind.title.toLowerCase()}.json`);
    const mask = button("Insert [MASK]", () => this.insert("[MASK]"), { class: "quiet", hidden: !this.asksForMask() });
    const card = element(
      "div",
      { class: "card pair" },
      pane("Text", "Text", [mask], ...fields),
      pane(this.kind.title, this.kind.title, tools, this.output),
    );
    this.element = workspaceOf([card], this.attention);
  }

  focus() {
    this.source.input.focus();
  }

  /** The second text of a pair, or null. */
  secondText() {
    return this.second?.value.trim() || null;
  }

  asksForMask() {
    return this.model.takes === "masked text";
  }

  insert(text) {
    const field = this.source.input;
    field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
    field.dispatchEvent(new Event("input"));
    field.focus();
  }

  empty() {
    return element("p", { class: "placeholder" }, "The answer appears here.");
  }

  async ask() {
    this.controller?.abort();
    const controller = new AbortController();
    this.controller = controller;
    const body = this.kind.body(this.source.value, this.secondText());
    if (body === null) {
      this.answer = null;
      this.output.replaceChildren(this.empty());
      return;
    }
    try {
      const answer = await call(this.path, { model: this.model.name, ...body }, controller.signal);
      if (controller.signal.aborted) return;
      this.answer = answer;
      this.output.replaceChildren(...this.kind.draw(answer, this));
      showRemarks(answer.remarks);
      announce(this.kind.say(answer));
      this.attention.refresh();
    } catch (error) {
      if (!wasAborted(error) && !controller.signal.aborted) showError(error, () => this.ask());
    }
  }

  /** What is looked into: the first line, where each line is a text of its own. */
  followed() {
    const text = this.model.takes === "texts" ? linesOf(this.source.value)[0] : this.source.value.trim();
    return text ? { text, target: this.secondText() } : null;
  }

  async loadAttention(signal) {
    const followed = this.followed();
    return followed && call("/api/attention", { model: this.model.name, ...followed }, signal);
  }
}

function linesOf(text) {
  return text.split("\n").filter((line) => line.trim());
}

function tags(words) {
  const chips = words.map(({ word, tag, probability }) => {
    const label = element("span", { class: "tag-name" }, tag);
    const properties = { class: tag === "O" ? "tag none" : "tag", title: percent(probability) };
    return element("li", properties, element("span", {}, word), label);
  });
  return element("ol", { class: "tags" }, ...chips);
}

/** The guesses for one mask; a click puts a guess into the text. */
function guessList(guesses, index, workspace) {
  const highest = guesses[0].probability;
  const rows = guesses.map((guess) => {
    const use = () => {
      let seen = -1;
      const replaced = (mask) => (++seen === index ? guess.token : mask);
      workspace.source.value = workspace.source.value.replace(/\[MASK\]/g, replaced);
      workspace.ask();
    };
    return choiceButton(guess.token, guess.probability, highest, use);
  });
  return element("div", { class: "choice-list", role: "group", "aria-label": `Mask ${index + 1}` }, ...rows);
}

function similarities(texts, vectors) {
  const product = (one, other) => one.reduce((sum, value, place) => sum + value * other[place], 0);
  const cosine = (one, other) => product(one, other) / Math.sqrt(product(one, one) * product(other, other) || 1);
  const numbers = vectors.map((_, index) => element("th", { scope: "col" }, String(index + 1)));
  const rows = vectors.map((vector, index) => {
    const cells = vectors.map((other) => {
      const value = cosine(vector, other);
      const cell = element("td", {}, value.toFixed(2));
      cell.style.setProperty("--share", Math.max(0, value));
      return cell;
    });
    return element("tr", {}, element("th", { scope: "row" }, `${index + 1} ${texts[index] ?? ""}`), ...cells);
  });
  const head = element("thead", {}, element("tr", {}, element("td"), ...numbers));
  const table = element("table", {}, head, element("tbody", {}, ...rows));
  const properties = { class: "similarities", role: "region", "aria-label": "Cosine similarities", tabIndex: 0 };
  return element("div", properties, table);
}
