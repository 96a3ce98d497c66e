// Image classification: an image by button, drop or paste, its labels, and the attention over it.

import { call, wasAborted } from "./api.js";
import { LookPanels } from "./look_panels.js";
import { ranking } from "./ranking.js";
import { announce, button, element, numberField, numberIn } from "./dom.js";
import { exportButtons } from "./exporting.js";
import { clearNotice, showError, showNotice } from "./notice.js";
import { pane, workspaceOf } from "./panes.js";

export class ImageWorkspace {
  constructor(model) {
    this.model = model;
    this.image = null;
    this.answer = null;
    this.controller = null;
    this.attention = new LookPanels(model, (signal) => this.loadAttention(signal), () => this.followed());
    this.build();
    document.addEventListener("paste", (event) => {
      if (this.element.isConnected) this.take(event.clipboardData?.files[0]);
    });
  }

  build() {
    this.input = element("input", {
      type: "file", accept: "image/*", class: "hidden", tabIndex: -1, "aria-label": "Image file",
      onchange: () => this.take(this.input.files[0]),
    });
    this.preview = element("img", { class: "preview", alt: "", hidden: true });
    this.choose = button("Choose an image", () => this.input.click(), { class: "primary" });
    this.hint = element("p", { class: "muted" }, "or drop or paste one here");
    const empty = element("p", { class: "placeholder" }, "What the image shows appears here.");
    this.output = element("div", { class: "answer" }, empty);
    this.resolution = numberField("Resolution", "", {
      min: 1, max: 1024, step: 1, placeholder: "own", onchange: () => this.ask(),
    });
    const tools = exportButtons(() => JSON.stringify(this.answer, null, 2), "labels.json");
    const panes = [pane("Image", "Image", [], this.dropZone()), pane("Label", "Label", tools, this.output)];
    this.element = workspaceOf([element("div", { class: "card pair" }, ...panes)], this.attention, this.resolution.row);
  }

  /** The place where images are dropped. */
  dropZone() {
    const zone = element("div", { class: "drop" }, this.preview, this.choose, this.hint, this.input);
    for (const kind of ["dragover", "dragenter"]) {
      zone.addEventListener(kind, (event) => {
        event.preventDefault();
        zone.classList.add("over");
      });
    }
    zone.addEventListener("dragleave", () => zone.classList.remove("over"));
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      zone.classList.remove("over");
      this.take(event.dataTransfer.files[0]);
    });
    return zone;
  }

  focus() {
    this.choose.focus();
  }

  async take(file) {
    if (!file) return;
    if (!file.type.startsWith("image/")) {
      showNotice("error", `${file.name} is not an image.`);
      return;
    }
    clearNotice("error");
    const address = await dataAddress(file);
    this.image = address.slice(address.indexOf(",") + 1);
    this.preview.src = address;
    this.preview.alt = file.name;
    this.preview.hidden = false;
    this.choose.textContent = "Choose another image";
    await this.ask();
  }

  async ask() {
    if (this.image === null) return;
    this.controller?.abort();
    const controller = new AbortController();
    this.controller = controller;
    try {
      const answer = await call("/api/classify", { model: this.model.name, ...this.followed() }, controller.signal);
      if (controller.signal.aborted) return;
      this.answer = answer;
      this.output.replaceChildren(ranking(answer.results[0].probabilities));
      announce(`The image shows: ${answer.results[0].label}`);
      this.attention.refresh();
    } catch (error) {
      if (!wasAborted(error) && !controller.signal.aborted) showError(error, () => this.ask());
    }
  }

  /** What is labelled and looked into: the image, at the size that the reader chose. */
  followed() {
    return this.image && { image: this.image, resolution: numberIn(this.resolution.input) };
  }

  /** The attention document; its labels are left out, since they are above it already. */
  async loadAttention(signal) {
    const followed = this.followed();
    if (followed === null) return null;
    const found = await call("/api/attention", { model: this.model.name, ...followed }, signal);
    return { ...found, outputs: [] };
  }
}

function dataAddress(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
