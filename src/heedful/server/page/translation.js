// Translation: the source on the left, the translation on the right, as it is decoded.

import { LookPanels } from "./look_panels.js";
import { closeChoices, openChoices } from "./choices.js";
import { announce, button, debounced, element, numberField, numberIn, percent } from "./dom.js";
import { exportButtons } from "./exporting.js";
import { clearNotice, showError, showRemarks } from "./notice.js";
import { pane, workspaceOf } from "./panes.js";
import { rove } from "./roving.js";
import { SourceField } from "./source_field.js";
import { TranslatedLine, alternatives, loadAttention } from "./translated_line.js";
import { languageName } from "./languages.js";
import { sourceWeights, splitWords } from "./words.js";

const LINES_AT_A_TIME = 4;
const QUIET = 250;

export class TranslationWorkspace {
  constructor(model) {
    this.model = model;
    this.lines = [];
    this.active = null;
    // Where in the active line the latest word was opened.
    this.place = 0;
    // The word whose card is open, and the word whose marks are wanted.
    this.opened = null;
    this.wanted = null;
    this.translateSoon = debounced(() => this.translate(), QUIET);
    this.attention = new LookPanels(model, () => this.attentionOfActive(), () => this.followed());
    this.build();
  }

  build() {
    const { source_language: from, target_language: to } = this.model;
    this.source = new SourceField({
      label: "Text to translate", placeholder: "Type or paste a text", language: from, oninput: () => this.typed(),
    });
    this.output = element("div", {
      class: "output", role: "group", lang: to ?? "",
      "aria-label": "Translation; the arrow keys move between its words, Enter opens alternatives",
    });
    this.words = rove(this.output, ".word");
    this.progress = element("span", { class: "progress", "aria-hidden": "true" });
    this.free = button("Undo", () => this.decodeFreely(), {
      class: "quiet", hidden: true, "aria-label": "Undo the words that you chose",
    });
    this.others = element("ol", { class: "others", "aria-label": "Other translations", hidden: true });
    this.beam = numberField("Beam", 5, { min: 1, max: 32, step: 1, onchange: () => this.settingsChanged() });
    this.nbest = numberField("Translations", 1, { min: 1, max: 10, step: 1, onchange: () => this.widen() });
    const clear = button("Clear", () => this.clear(), { class: "quiet" });
    const hint = "Click a translated word to see what it looked at, and its alternatives.";
    const advice = element("span", { class: "advice" }, hint);
    const tools = [this.progress, this.free, ...exportButtons(() => this.text(), "translation.txt")];
    const card = element(
      "div",
      { class: "card pair" },
      pane("Source", languageName(from, "Source"), [clear], this.source.element),
      pane("Translation", languageName(to, "Translation"), tools, this.output, this.others),
    );
    this.element = workspaceOf([card], this.attention, this.beam.row, this.nbest.row, advice);
    this.draw();
  }

  focus() {
    this.source.input.focus();
  }

  text() {
    return this.lines.map((line) => line.text).join("\n");
  }

  typed() {
    closeChoices(false);
    clearNotice("error");
    this.adopt();
    this.translateSoon();
  }

  /** The lines as they are now; those that were there keep their translations. */
  adopt() {
    const known = new Map();
    for (const line of this.lines) known.set(line.source, [...(known.get(line.source) ?? []), line]);
    const sources = this.source.value ? this.source.value.split("\n") : [];
    const changed = (line) => this.changed(line);
    this.lines = sources.map((source) => known.get(source)?.shift() ?? new TranslatedLine(source, changed));
    for (const gone of [...known.values()].flat()) gone.reset();
    if (!this.lines.includes(this.active)) this.active = null;
    this.draw();
  }

  /** Widen the beam to the number of translations, and show that. */
  widen() {
    const nbest = numberIn(this.nbest.input) ?? 1;
    if (nbest > (numberIn(this.beam.input) ?? 5)) this.beam.input.value = nbest;
    this.settingsChanged();
  }

  /** Start lines that wait, as many as may run. */
  translate() {
    const settings = { beam: numberIn(this.beam.input) ?? 5, nbest: numberIn(this.nbest.input) ?? 1 };
    settings.nbest = Math.min(settings.nbest, settings.beam);
    const running = this.lines.filter((line) => line.state === "running").length;
    const waiting = this.lines.filter((line) => line.state === "waiting");
    for (const line of waiting.slice(0, LINES_AT_A_TIME - running)) line.run(this.model.name, settings);
    this.draw();
  }

  changed(line) {
    if (line.state === "failed") {
      showError(line.error, () => this.startAgain((each) => each.state === "failed"));
      if (line.error.status !== 401) this.translate(); // whoever cancelled the dialog for the key is not asked again
    } else if (line.state === "done") {
      showRemarks(line.remarks);
      this.translate();
      if (this.lines.every((each) => each.state === "done")) announce(`Translated: ${this.text()}`);
      if (line === this.current()) this.attention.refresh();
    }
    this.draw();
  }

  startAgain(which) {
    for (const line of this.lines.filter(which)) line.startAgain();
    this.translate();
  }

  settingsChanged() {
    this.startAgain(() => true);
  }

  decodeFreely() {
    for (const line of this.lines.filter((each) => each.chosen)) {
      const pieces = line.pieces.filter((piece) => piece.prefix);
      for (const piece of pieces) piece.prefix = "";
      line.restartPieces(pieces);
    }
    this.translate();
  }

  clear() {
    this.source.value = "";
    this.typed();
    this.focus();
  }

  /** The line that was clicked last, or the first that holds something. */
  current() {
    return this.active ?? this.lines.find((line) => line.source.trim()) ?? null;
  }

  /** The piece of the current line that is looked into. */
  looked() {
    const line = this.current();
    return line?.state === "done" ? line.pieceAt(line === this.active ? this.place : 0)?.piece : null;
  }

  async attentionOfActive() {
    const piece = this.looked();
    return piece ? loadAttention(this.model.name, piece) : null;
  }

  /** It is followed to the model's own translation, which a switch may change. */
  followed() {
    const piece = this.looked();
    return piece ? { text: piece.source } : null;
  }

  draw() {
    const make = (line, word) => this.wordButton(line, word);
    const rows = this.lines.map((line, index) => drawLine(this.output.children[index], line, make));
    if (!rows.length) rows.push(element("p", { class: "placeholder" }, "The translation appears here."));
    const present = [...this.output.children];
    if (rows.length !== present.length || rows.some((row, index) => row !== present[index])) {
      this.output.replaceChildren(...rows);
    }
    this.words.mend();
    const busy = this.lines.some((line) => line.state === "running" || line.state === "waiting");
    this.output.setAttribute("aria-busy", String(busy));
    this.progress.classList.toggle("busy", busy);
    this.free.hidden = !this.lines.some((line) => line.chosen);
    this.drawOthers();
  }

  wordButton(line, word) {
    const made = button(word.text, () => this.open(made.line, made.word, made), { class: "word", tabIndex: -1 });
    for (const kind of ["pointerenter", "focus"]) made.addEventListener(kind, () => this.hint(made.line, made.word));
    for (const kind of ["pointerleave", "blur"]) made.addEventListener(kind, () => this.unmark());
    Object.assign(made, { line, word });
    return made;
  }

  drawOthers() {
    const line = this.current();
    const nbest = line?.translation?.nbest ?? [];
    this.others.hidden = nbest.length < 2;
    this.others.replaceChildren(...nbest.map((each) => {
      const use = () => {
        line.use(each);
        this.draw();
        this.attention.refresh();
      };
      const row = button(each.text, use, { "aria-current": each.text === line.text ? "true" : null });
      return element("li", {}, row, element("span", { class: "score" }, each.score.toFixed(2)));
    }));
  }

  /** A word was clicked: mark what it attended to, and offer what else could stand there. */
  open(line, word, anchor) {
    if (line.state !== "done") return;
    this.active = line;
    this.place = word.start;
    const { piece, start } = line.pieceAt(word.start);
    const before = line.text.slice(start, word.start).trimEnd();
    openChoices(anchor, {
      title: `Instead of “${word.text}”`,
      current: word.text,
      own: true,
      found: alternatives(this.model.name, piece, before),
      pick: (choice) => this.pick(line, piece, before, choice),
      onclose: () => {
        this.opened = null;
        this.unmark();
      },
    });
    this.opened = word;
    this.highlight(line, word);
    this.drawOthers();
    this.attention.refresh();
  }

  /** Decode the piece again, from the chosen word on; the others stay as they are. */
  pick(line, piece, before, choice) {
    const space = choice.own && before ? " " : "";
    piece.prefix = before + space + choice.text;
    line.restartPieces([piece]);
    this.translate();
  }

  /** Mark what a word attended to, where it is known already. */
  hint(line, word) {
    const known = line.state === "done" && line.pieceAt(word.start)?.piece.attention;
    if (this.opened === null && known) this.highlight(line, word);
  }

  unmark() {
    if (this.opened !== null) return;
    this.wanted = null;
    this.source.mark([]);
  }

  async highlight(line, word) {
    const { piece, start, from } = line.pieceAt(word.start);
    const wanted = loadAttention(this.model.name, piece);
    this.wanted = word;
    try {
      const stretch = { start: word.start - start, end: word.end - start };
      const found = sourceWeights(await wanted, piece.source, piece.text, stretch);
      if (this.wanted !== word || !this.lines.includes(line) || line.state !== "done") return;
      const earlier = this.lines.slice(0, this.lines.indexOf(line));
      const offset = earlier.reduce((sum, each) => sum + each.source.length + 1, from);
      const highest = Math.max(...found.map((each) => each.weight), 1e-9);
      this.source.mark(found.map((each) => ({
        start: each.start + offset, end: each.end + offset, weight: each.weight / highest,
      })));
      const best = [...found].sort((one, other) => other.weight - one.weight).slice(0, 3);
      announce(`“${word.text}” looks at ${best.map((each) => `${each.text} ${percent(each.weight)}`).join(", ")}`);
    } catch (error) {
      showError(error, () => this.highlight(line, word));
    }
  }
}

/** The row of a line, with the words that have not changed left as they are: the focus stays where it is. */
function drawLine(old, line, wordButton) {
  const row = old?.line === line ? old : element("p", { class: "line" });
  row.line = line;
  row.dataset.state = line.state;
  const words = splitWords(line.text);
  const parts = [];
  let cursor = 0;
  const buttons = [...row.querySelectorAll(".word")];
  words.forEach((word, index) => {
    if (word.start > cursor) parts.push(line.text.slice(cursor, word.start));
    const made = buttons[index] ?? wordButton(line, word);
    if (made.textContent !== word.text) made.textContent = word.text;
    made.word = word;
    made.classList.toggle("fixed", line.isFixed(word));
    parts.push(made);
    cursor = word.end;
  });
  for (const [index, part] of parts.entries()) {
    const present = row.childNodes[index];
    if (present === part || (typeof part === "string" && present?.nodeType === 3 && present.data === part)) continue;
    if (present) row.insertBefore(typeof part === "string" ? document.createTextNode(part) : part, present);
    else row.append(part);
  }
  while (row.childNodes.length > parts.length) row.lastChild.remove();
  return row;
}
