// The panels that look into a model: its attention, and its computation step by step.

import { call, wasAborted } from "./api.js";
import { button, element } from "./dom.js";
import { downloadText } from "./exporting.js";

class LookPanel {
  /** `load(signal)` promises a document, or null where there is nothing to show; `show(place, document)` draws it. */
  constructor(title, name, load, show) {
    Object.assign(this, { load, show, controller: null, shown: null });
    this.toggle = button(title, () => this.setOpen(this.section.hidden), { "aria-expanded": "false" });
    this.view = element("div", { class: `${name}-place` });
    this.download = button("Download JSON", () => downloadText(JSON.stringify(this.shown), `${name}.json`), {
      class: "quiet", disabled: true,
    });
    this.section = element(
      "section",
      { class: "attention-panel", "aria-label": title, hidden: true },
      element("div", { class: "attention-head" }, element("h2", {}, title), this.download),
      this.view,
    );
  }

  async setOpen(open) {
    this.section.hidden = !open;
    this.toggle.setAttribute("aria-expanded", String(open));
    if (!open) return;
    await this.refresh();
    // It opens below what it is about, so it is scrolled into view.
    this.section.scrollIntoView({ block: "start" });
  }

  /** Load and show the document again, if the panel is open. */
  async refresh() {
    if (this.section.hidden) return;
    this.controller?.abort();
    const controller = new AbortController();
    this.controller = controller;
    this.view.setAttribute("aria-busy", "true");
    try {
      const found = await this.load(controller.signal);
      if (controller.signal.aborted) return;
      this.shown = found;
      if (found) await this.show(this.view, found);
      else this.view.replaceChildren(element("p", { class: "muted" }, "There is nothing to look at yet."));
    } catch (error) {
      if (wasAborted(error) || controller.signal.aborted) return;
      this.shown = null;
      this.view.replaceChildren(element("p", { class: "muted" }, error.message));
    }
    this.download.disabled = this.shown === null;
    this.view.removeAttribute("aria-busy");
  }
}

export class LookPanels {
  /**
   * `attention(signal)` promises an attention document; `explained()` is what to follow, as the body of a request, or
   * promises it. Both may be null where there is nothing to show.
   */
  constructor(model, attention, explained) {
    const explain = (body, signal) => call("/api/explain", { model: model.name, ...body }, signal);
    let followed = null;
    const load = async (signal) => {
      followed = await explained();
      return followed && explain(followed, signal);
    };
    const compute = (switches, text) => explain({ ...followed, ...(text === null ? {} : { text }), switches });
    this.panels = [
      new LookPanel("Attention", "attention", attention, async (place, found) => {
        (await import("./attention_view.js")).showAttention(place, found);
      }),
      new LookPanel("Step by step", "explain", load, async (place, found) => {
        (await import("./explain_view.js")).showExplanation(place, found, { compute });
      }),
    ];
    this.toggle = element("span", { class: "look-toggles" }, ...this.panels.map((panel) => panel.toggle));
    this.section = element("div", {}, ...this.panels.map((panel) => panel.section));
  }

  /** Refresh the panels that are open. */
  refresh() {
    for (const panel of this.panels) panel.refresh();
  }
}
