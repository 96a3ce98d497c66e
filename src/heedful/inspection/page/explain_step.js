// One step of the computation: its formula, its shapes, its matrix, the followed token's numbers, and its code.

import { element } from "./attention_elements.js";
import { huesOf } from "./attention_colours.js";
import { MatrixPicture } from "./explain_matrix.js";
import { keyBars, vectorLine } from "./explain_numbers.js";

const LETTERS = {
  T: "positions", S: "positions of keys", D: "width of the model", H: "heads", G: "key/value heads", K: "width of a key",
  V: "width of a value", F: "inner width", P: "patches", C: "numbers of a patch", X: "all heads joined",
};

export class StepCard {
  constructor({ explained, before, state, view }, part, step, number) {
    Object.assign(this, { explained, before, state, view, part, step });
    this.picture = new MatrixPicture(state, explained, view);
    this.numbers = element("div", { class: "explain-row" });
    this.turn = 0;
    this.card = element(
      "article",
      { class: "explain-step", "data-step": step.name, "aria-label": step.title },
      element(
        "header",
        {},
        element("span", { class: "explain-number", "aria-hidden": "true", text: number }),
        element("h3", { text: step.title }),
        element("span", { class: "explain-formula" }, ...withIndices(step.formula)),
        shapeOf(step),
      ),
      element("p", { class: "explain-about", text: step.about }),
      element("div", { class: "explain-body" }, this.picture.panel, this.numbers),
      codeOf(step),
    );
  }

  // Called only when the step is near the screen: until then its numbers stay packed.
  async draw() {
    const turn = (this.turn += 1);
    const { explained, state, part, step, before } = this;
    const heads = explained.numberOfHeads(part);
    const head = Math.min(state.values.head, Math.max(0, heads - 1));
    const sheet = await explained.sheet(step, head, heads);
    const earlier = before?.steps(before.part(part.name)).find((each) => each.name === step.name);
    const sheetBefore = earlier ? await before.sheet(earlier, head, heads) : null;
    if (turn !== this.turn) return; // another head was chosen in the meantime
    Object.assign(this, { sheet, earlier: sheetBefore });
    this.picture.show(sheet, huesOf(head));
    this.follow();
  }

  // The row of the followed token.
  follow() {
    const { sheet, state, explained, view } = this;
    if (!sheet) return;
    this.picture.draw();
    const place = sheet.rowSequence === null ? 0 : state.place(explained, sheet.rowSequence);
    const name = sheet.rowSequence === null ? sheet.rows[0] : explained.tokens(sheet.rowSequence)[place];
    const title = element("h4", {}, "of ", element("b", { text: name }));
    this.numbers.replaceChildren(title, sheet.columns ? keyBars(sheet, place, this.earlier) : vectorLine(sheet, place, view));
  }
}

// What follows an underscore becomes a subscript: W_Q, d_k.
export function withIndices(formula) {
  return formula.split(/_(\w+)/).map((text, place) => (place % 2 ? element("sub", { text }) : document.createTextNode(text)));
}

function shapeOf(step) {
  const sizes = [...step.letters].map((letter, axis) => {
    const meaning = LETTERS[letter] ?? letter;
    return element("span", { title: meaning }, element("b", { text: letter }), ` ${step.shape[axis]}`);
  });
  const spoken = [...step.letters].map((letter, axis) => `${LETTERS[letter] ?? letter} ${step.shape[axis]}`).join(", ");
  return element("span", { class: "explain-shape", role: "img", "aria-label": `Shape: ${spoken}` }, ...sizes);
}

function codeOf(step) {
  if (!step.code) return null;
  const { file, line, text } = step.code;
  return element(
    "p",
    { class: "explain-code" },
    element("code", { text }),
    element("span", { text: `${file}:${line}` }),
  );
}
