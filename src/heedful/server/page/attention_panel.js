// The panel that shows an attention document with the viewer of the attention page.

import { wasAborted } from "./api.js";
import { button, element } from "./dom.js";
import { downloadText } from "./exporting.js";

export class AttentionPanel {
  /** `load(signal)` promises an attention document, or null where there is nothing to show. */
  constructor(load) {
    this.load = load;
    this.controller = null;
    this.shown = null;
    this.toggle = button("Attention", () => this.setOpen(this.section.hidden), { "aria-expanded": "false" });
    this.view = element("div", { class: "attention-place" });
    this.download = button("Download JSON", () => downloadText(JSON.stringify(this.shown), "attention.json"), {
      class: "quiet", disabled: true,
    });
    this.section = element(
      "section",
      { class: "attention-panel", "aria-label": "Attention", hidden: true },
      element("div", { class: "attention-head" }, element("h2", {}, "Attention"), this.download),
      this.view,
    );
  }

  async setOpen(open) {
    this.section.hidden = !open;
    this.toggle.setAttribute("aria-expanded", String(open));
    if (!open) return;
    await this.refresh();
    // It opens below what it is about: what was asked for is brought on the screen.
    this.section.scrollIntoView({ block: "start" });
  }

  /** Show the state of things, if the panel is open. */
  async refresh() {
    if (this.section.hidden) return;
    this.controller?.abort();
    const controller = new AbortController();
    this.controller = controller;
    this.view.setAttribute("aria-busy", "true");
    try {
      const [{ showAttention }, found] = await Promise.all([
        import("./attention_view.js"), this.load(controller.signal),
      ]);
      if (controller.signal.aborted) return;
      this.shown = found;
      if (found) showAttention(this.view, found);
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
