// A text field whose words can be marked: the marks are drawn behind it, on a copy of its text.

import { element } from "./dom.js";

export class SourceField {
  constructor({ label, placeholder, language = null, oninput }) {
    this.marks = element("div", { class: "field-marks", "aria-hidden": "true" });
    this.input = element("textarea", {
      class: "field-input", placeholder, "aria-label": label, lang: language ?? "", spellcheck: false, rows: 2,
      oninput: () => {
        this.mark([]);
        this.grow();
        oninput();
      },
    });
    this.element = element("div", { class: "field" }, this.marks, this.input);
    new ResizeObserver(() => this.grow()).observe(this.element);
  }

  get value() {
    return this.input.value;
  }

  set value(text) {
    this.input.value = text;
    this.mark([]);
    this.grow();
  }

  /** Make the field as high as its text. */
  grow() {
    this.input.style.height = "auto";
    this.input.style.height = `${this.input.scrollHeight}px`;
  }

  /** Mark stretches {start, end, weight}, which are in order and do not overlap. */
  mark(stretches) {
    const text = this.value;
    const parts = [];
    let cursor = 0;
    for (const { start, end, weight } of stretches) {
      const marked = element("mark", {}, text.slice(start, end));
      marked.style.setProperty("--weight", weight);
      parts.push(text.slice(cursor, start), marked);
      cursor = end;
    }
    this.marks.replaceChildren(...parts, text.slice(cursor));
  }
}
