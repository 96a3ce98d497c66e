// One line of the source and its translation, as far as it is there.

import { call, stream, wasAborted } from "./api.js";

export class TranslatedLine {
  constructor(source, changed) {
    this.source = source;
    this.changed = changed;
    this.prefix = "";
    this.reset();
  }

  reset() {
    this.controller?.abort();
    this.controller = null;
    this.text = "";
    this.translation = null;
    this.remarks = [];
    this.error = null;
    this.attention = null;
    this.state = this.source.trim() ? "waiting" : "done";
  }

  /** Decode again, from a text that the translation is to begin with. */
  restart(prefix) {
    this.prefix = prefix;
    this.reset();
    this.text = prefix;
  }

  async run(model, settings) {
    const controller = new AbortController();
    this.controller = controller;
    this.state = "running";
    const body = { model, text: this.source, prefix: this.prefix, scores: true, ...settings };
    try {
      for await (const { event, data } of stream("/api/translate", body, controller.signal)) {
        if (event === "partial") this.text = data.text;
        if (event === "done") this.finish(data);
        this.changed(this);
      }
      if (this.state === "running") throw new Error("The connection was lost before the translation was complete.");
    } catch (error) {
      if (controller.signal.aborted || wasAborted(error)) return;
      this.state = "failed";
      this.error = error;
      this.changed(this);
    }
  }

  finish({ translation, remarks }) {
    this.translation = translation;
    this.remarks = remarks;
    this.use(translation.text);
  }

  /** Take this text for the translation. */
  use(text) {
    this.text = text;
    this.attention = null;
    this.state = "done";
  }

  /** What else could come after this beginning of the translation. */
  async alternatives(model, prefix) {
    const body = { model, text: this.source, prefix, count: 8 };
    return (await call("/api/alternatives", body)).alternatives;
  }

  /** The attention document of the line and its translation, asked for once. */
  loadAttention(model) {
    if (this.attention === null) {
      const wanted = call("/api/attention", { model, text: this.source, target: this.text });
      this.attention = wanted;
      wanted.catch(() => {
        if (this.attention === wanted) this.attention = null;
      });
    }
    return this.attention;
  }
}
