// Text completion: each token tinted by its probability, with those that could have come instead.

import { call, stream, wasAborted } from "./api.js";
import { LookPanels } from "./look_panels.js";
import { closeChoices, openChoices, visible } from "./choices.js";
import { announce, button, element, numberField, numberIn, percent } from "./dom.js";
import { exportButtons } from "./exporting.js";
import { clearNotice, showError, showRemarks } from "./notice.js";
import { paneHead, workspaceOf } from "./panes.js";
import { rove } from "./roving.js";
import { SourceField } from "./source_field.js";

// Where the colour scale of tokens ends: a probability of one in 4096.
const MOST_BITS = 12;
const SCALE_STOPS = 9;

export class GenerationWorkspace {
  constructor(model) {
    this.model = model;
    this.controller = null;
    this.samples = [];
    this.attention = new LookPanels(model, (signal) => this.loadAttention(signal), () => this.followed());
    this.build();
  }

  build() {
    this.prompt = new SourceField({
      label: "Text to continue", placeholder: "Write a beginning; the model continues from there",
      oninput: () => clearNotice("error"),
    });
    this.prompt.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.start();
    });
    // How many tokens there may be, each server decides for itself, and says.
    this.fields = {
      max_tokens: numberField("Tokens", 80, { min: 1, step: 1 }),
      temperature: numberField("Temperature", 0.8, { min: 0, max: 5, step: "any" }),
      top_p: numberField("Top p", "", { min: 0.000001, max: 1, step: "any", placeholder: "all" }),
      top_k: numberField("Top k", "", { min: 1, max: 100000, step: 1, placeholder: "all" }),
      seed: numberField("Seed", "", { min: 0, max: 2147483647, step: 1, placeholder: "any" }),
      samples: numberField("Samples", 1, { min: 1, max: 16, step: 1 }),
    };
    this.go = button("Continue the text", () => (this.controller ? this.halt() : this.start()), { class: "primary" });
    this.output = element("div", {
      class: "samples", role: "group",
      "aria-label": "Continuation; the arrow keys move between its tokens, Enter opens what else was likely",
    });
    this.tokens = rove(this.output, ".token");
    this.tip = element("p", { class: "tip", "aria-live": "off" }, "Hover or focus a token to see its probability.");
    const rows = Object.values(this.fields).map((field) => field.row);
    const keys = element("span", { class: "muted keys" }, "Ctrl + Enter");
    const actions = element("div", { class: "actions" }, keys, this.go);
    const prompt = element(
      "section",
      { class: "card pane", "aria-label": "Prompt" },
      this.prompt.element,
      element("div", { class: "settings" }, ...rows, actions),
    );
    const legend = element("div", { class: "legend" }, "sure", surpriseScale(), "surprising");
    const tools = exportButtons(() => this.text(), "continuation.txt");
    const continuation = element(
      "section",
      { class: "card pane", "aria-label": "Continuation" },
      paneHead(legend, ...tools),
      this.output,
      this.tip,
    );
    this.element = workspaceOf([prompt, continuation], this.attention);
    this.draw();
  }

  focus() {
    this.prompt.input.focus();
  }

  text() {
    return this.samples.map(textOf).join("\n\n");
  }

  followed() {
    const [first] = this.samples;
    const text = first ? textOf(first) : this.prompt.value;
    return text.trim() ? { text } : null;
  }

  async loadAttention(signal) {
    const followed = this.followed();
    return followed && call("/api/attention", { model: this.model.name, ...followed }, signal);
  }

  start() {
    const prompt = this.prompt.value;
    const count = numberIn(this.fields.samples.input) ?? 1;
    this.generate(Array.from({ length: count }, () => ({ prompt, tokens: [] })), prompt);
  }

  halt() {
    this.controller?.abort();
    this.controller = null;
    this.draw();
  }

  async generate(samples, prompt) {
    closeChoices(false);
    this.controller?.abort();
    clearNotice("error");
    const controller = new AbortController();
    this.controller = controller;
    this.samples = samples;
    this.output.replaceChildren();
    this.draw();
    const settings = { model: this.model.name, prompt, probabilities: true, samples: samples.length };
    for (const [name, field] of Object.entries(this.fields)) {
      const value = numberIn(field.input);
      if (value !== null && name !== "samples") settings[name] = value;
    }
    // Unless the reader gives a seed, each click gives another text.
    settings.seed ??= Math.floor(Math.random() * 2147483647);
    try {
      for await (const { event, data } of stream("/api/generate", settings, controller.signal)) {
        if (event === "token") this.add(data);
        if (event === "done") showRemarks(data.remarks);
      }
      announce(`Continued: ${this.text()}`);
      this.attention.refresh();
    } catch (error) {
      const again = () => this.generate(samples.map((each) => ({ ...each, tokens: [] })), prompt);
      if (!wasAborted(error) && !controller.signal.aborted) showError(error, again);
    }
    if (this.controller === controller) this.controller = null;
    this.draw();
  }

  add(data) {
    const sample = this.samples[data.sample];
    sample.tokens.push(data);
    this.output.children[data.sample].append(this.tokenButton(sample, sample.tokens.length - 1));
    this.tokens.mend();
  }

  draw() {
    this.go.textContent = this.controller ? "Stop" : "Continue the text";
    this.output.setAttribute("aria-busy", String(this.controller !== null));
    if (!this.samples.length) {
      this.output.replaceChildren(element("p", { class: "placeholder" }, "The continuation appears here."));
    } else if (this.output.children.length !== this.samples.length || !this.output.querySelector(".prompt")) {
      this.output.replaceChildren(...this.samples.map((sample) => this.sampleRow(sample)));
      this.tokens.mend();
    }
  }

  sampleRow(sample) {
    const buttons = sample.tokens.map((_, index) => this.tokenButton(sample, index));
    return element("p", { class: "sample" }, element("span", { class: "prompt" }, sample.prompt), ...buttons);
  }

  tokenButton(sample, index) {
    const token = sample.tokens[index];
    const open = () => this.open(sample, index, made);
    // A button element would not wrap at the end of a line.
    const made = element("span", { class: "token", role: "button", tabIndex: -1, onclick: open }, token.text);
    made.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      open();
    });
    if (typeof token.probability === "number") {
      made.style.setProperty("--surprise", 1 - token.probability);
      made.style.setProperty("--bits", bitsShare(token.probability));
    }
    const tell = () => this.tell(token);
    made.addEventListener("pointerenter", tell);
    made.addEventListener("focus", tell);
    return made;
  }

  tell(token) {
    const show = (each) => `${visible(each.text)} ${percent(each.probability)}`;
    if (typeof token.probability !== "number") return;
    const others = (token.runners_up ?? []).map(show);
    this.tip.textContent = `${show(token)}${others.length ? `; could have been: ${others.join(", ")}` : ""}`;
  }

  open(sample, index, anchor) {
    if (this.controller) return;
    const token = sample.tokens[index];
    const choices = [token, ...(token.runners_up ?? [])].sort((one, other) => other.probability - one.probability);
    openChoices(anchor, {
      title: "Continue from another token",
      current: token.text,
      found: Promise.resolve(choices),
      pick: (choice) => {
        const kept = textOf({ ...sample, tokens: sample.tokens.slice(0, index) }) + choice.text;
        this.generate([{ prompt: kept, tokens: [] }], kept);
      },
    });
  }
}

/** How surprising a token is, from 0 to 1: its bits, of which more than MOST_BITS look alike. */
function bitsShare(probability) {
  return Math.min(1, -Math.log2(Math.max(probability, 2 ** -MOST_BITS)) / MOST_BITS);
}

function surpriseScale() {
  const stops = Array.from({ length: SCALE_STOPS }, (_, place) => {
    const stop = element("i", {});
    stop.style.setProperty("--bits", place / (SCALE_STOPS - 1));
    return stop;
  });
  return element("span", { class: "scale", "aria-hidden": "true" }, ...stops);
}

/** The prompt and what came after it. */
function textOf(sample) {
  return sample.prompt + sample.tokens.map((token) => token.text).join("");
}
