// One line of the source and its translation so far, in the pieces that the server translated it in.

import { call, stream, wasAborted } from "./api.js";

export class TranslatedLine {
  constructor(source, changed) {
    this.source = source;
    this.changed = changed;
    this.pieces = [];
    this.restart();
  }

  /** Decode the whole line again. */
  restart() {
    this.reset();
    this.pieces = [];
    this.text = "";
    this.waiting = null;
    this.state = this.source.trim() ? "waiting" : "done";
  }

  reset() {
    this.controller?.abort();
    this.controller = null;
    this.translation = null;
    this.remarks = [];
    this.error = null;
  }

  /** Decode some of the pieces again, each from the text that its translation is to begin with. */
  restartPieces(pieces) {
    this.reset();
    this.waiting = pieces;
    for (const piece of pieces) Object.assign(piece, { text: piece.prefix, attention: null });
    this.text = joined(this.pieces);
    this.state = "waiting";
  }

  /** Decode again what there is to decode, with the words that were chosen. */
  startAgain() {
    if (this.waiting || this.chosen) this.restartPieces(this.waiting ?? this.pieces);
    else this.restart();
  }

  /** Whether the translation begins with chosen words, in some piece. */
  get chosen() {
    return this.pieces.some((piece) => piece.prefix);
  }

  async run(model, settings) {
    const controller = new AbortController();
    this.controller = controller;
    this.state = "running";
    try {
      if (this.waiting === null) await this.decodeLine(model, settings, controller.signal);
      while (this.waiting?.length) await this.decodePiece(this.waiting[0], model, settings, controller.signal);
      this.waiting = null;
      this.state = "done";
      this.changed(this);
    } catch (error) {
      if (controller.signal.aborted || wasAborted(error)) return;
      this.state = "failed";
      this.error = error;
      this.changed(this);
    }
  }

  async decodeLine(model, settings, signal) {
    const body = { model, text: this.source, scores: true, ...settings };
    const { translation, remarks } = await this.decode(body, signal, (text) => { this.text = text; });
    this.remarks = remarks;
    this.translation = translation;
    this.use(translation);
  }

  async decodePiece(piece, model, settings, signal) {
    const body = { model, text: piece.source, prefix: piece.prefix, split: "none", scores: true, ...settings };
    const { translation, remarks } = await this.decode(body, signal, (text) => {
      piece.text = text;
      this.text = joined(this.pieces);
    });
    const withText = (text) => this.pieces.map((each) => (each === piece ? { ...each, text } : each));
    const nbest = translation.nbest?.map(({ text, score }) => ({ text: joined(withText(text)), score, pieces: withText(text) }));
    piece.text = translation.text;
    this.text = joined(this.pieces);
    this.translation = { text: this.text, nbest };
    this.remarks = remarks;
    this.waiting = this.waiting.slice(1);
  }

  async decode(body, signal, show) {
    for await (const { event, data } of stream("/api/translate", body, signal)) {
      if (event === "done") return data;
      if (event === "partial") show(data.text);
      this.changed(this);
    }
    throw new Error("The connection was lost before the translation was complete.");
  }

  /** Use this one as the translation. */
  use({ text, pieces }) {
    this.text = text;
    const found = pieces ?? [{ source: this.source, text, before: "" }];
    this.pieces = found.map(({ source, text: its, before }) => ({ source, text: its, before, prefix: "", attention: null }));
  }

  /** The piece that holds this place of the translation, and where it begins in translation and source. */
  pieceAt(place) {
    let start = 0;
    let from = 0;
    for (const piece of this.pieces) {
      start += piece.before.length;
      from = Math.max(from, this.source.indexOf(piece.source, from));
      if (place < start + piece.text.length || piece === this.pieces.at(-1)) return { piece, start, from };
      start += piece.text.length;
      from += piece.source.length;
    }
    return null;
  }

  /** Whether a word was chosen, or stands before one that was. */
  isFixed(word) {
    const { piece, start } = this.pieceAt(word.start) ?? {};
    return piece !== undefined && word.end - start <= piece.prefix.length;
  }
}

/** What else could come after a beginning of a piece's translation. */
export async function alternatives(model, piece, prefix) {
  return (await call("/api/alternatives", { model, text: piece.source, prefix, count: 8 })).alternatives;
}

/** The attention document of a piece and its translation, asked for once. */
export function loadAttention(model, piece) {
  if (piece.attention === null) {
    const wanted = call("/api/attention", { model, text: piece.source, target: piece.text });
    piece.attention = wanted;
    wanted.catch(() => {
      if (piece.attention === wanted) piece.attention = null;
    });
  }
  return piece.attention;
}

function joined(pieces) {
  return pieces.map((piece) => piece.before + piece.text).join("");
}
