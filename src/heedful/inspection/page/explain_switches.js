// Switches that compute again, where something can: a server with the model.

import { element, picker } from "./attention_elements.js";

const NOTE = "To see what changes without scaling, masks, positions or a head, the model must compute again: open it with heedful serve, where PyTorch is installed.";
export const AS_TRAINED = { temperature: 1, scaling: true, mask: true, positions: true, head_off: null };

export class SwitchPanel {
  // `compute(switches, text)` returns a promise of another document; without it there is only a note.
  constructor({ explained, state }, compute, changed) {
    Object.assign(this, { explained, state, compute, changed, switches: { ...AS_TRAINED }, turn: 0 });
    this.panel = element("details", { class: "explain-switches" }, element("summary", { text: "Change the computation" }));
    if (!compute) {
      this.panel.append(element("p", { class: "explain-note", text: NOTE }));
      return;
    }
    this.told = element("p", { class: "explain-note", "aria-live": "polite" });
    this.text = explained.plain.texts[0] ?? null;
    this.panel.append(element("div", { class: "explain-switch-row" }, ...this.controls()), this.told);
  }

  controls() {
    const box = (name, text) => {
      const input = element("input", { type: "checkbox", name, on: { change: () => this.set({ [name]: input.checked }) } });
      input.checked = true;
      return element("label", { class: "explain-switch" }, input, element("span", { text }));
    };
    this.shown = element("output", { text: "1" });
    const slider = element("input", {
      type: "range", name: "temperature", min: "0.1", max: "3", step: "0.1", value: "1",
      on: { change: () => this.set({ temperature: Number(slider.value) }), input: () => (this.shown.textContent = slider.value) },
    });
    const temperature = element("label", { class: "explain-switch" }, element("span", { text: "Temperature" }), slider, this.shown);
    this.headOff = element("input", { type: "checkbox", name: "head_off", on: { change: () => this.setHead() } });
    this.headName = element("span");
    const head = element("label", { class: "explain-switch" }, this.headOff, this.headName);
    const name = () => {
      const attention = this.attention();
      this.headOff.disabled = !attention && !this.headOff.checked;
      if (!this.headOff.checked) this.headName.textContent = attention ? `Head ${this.state.values.head + 1} of this block off` : "A head off (open a block)";
    };
    this.state.watch(["part", "head"], name, true);
    name();
    return [
      box("scaling", "Divide by √dₖ"), box("mask", "Mask"), box("positions", "Positions"), head, temperature, this.swap(),
    ];
  }

  // The attention of the open block whose heads are shown: the last that has any.
  attention() {
    const part = this.explained.part(this.state.values.part);
    const steps = this.explained.steps(part).filter((step) => step.name.endsWith(".mixed"));
    return steps.length ? steps.at(-1).name.replace(/\.mixed$/, "") : null;
  }

  setHead() {
    const attention = this.attention();
    this.set({ head_off: this.headOff.checked && attention ? { attention, head: this.state.values.head } : null });
  }

  swap() {
    const words = (this.text ?? "").split(/\s+/).filter((word) => word);
    if (words.length < 2) return null;
    const options = words.map((word, place) => ({ value: place, text: word }));
    const chosen = [0, 1];
    const change = (which) => (value) => (chosen[which] = Number(value));
    const button = element("button", {
      type: "button", class: "explain-turn", text: "Swap",
      on: {
        click: () => {
          const swapped = (this.swapped ?? this.text).split(/\s+/).filter((word) => word);
          [swapped[chosen[0]], swapped[chosen[1]]] = [swapped[chosen[1]], swapped[chosen[0]]];
          this.swapped = swapped.join(" ");
          this.set({});
        },
      },
    });
    return element(
      "span", { class: "explain-switch" }, picker("Swap", options, 0, change(0)), picker("and", options, 1, change(1)), button,
    );
  }

  // Of several computations under way, only the answer to the last one is shown.
  async set(values) {
    const turn = (this.turn += 1);
    Object.assign(this.switches, values);
    this.told.textContent = "Computing …";
    this.panel.setAttribute("aria-busy", "true");
    try {
      const text = this.swapped ?? this.text;
      const plain = await this.compute(this.switches, text);
      if (turn !== this.turn) return;
      const changed = text !== this.text || Object.keys(AS_TRAINED).some((name) => this.switches[name] !== AS_TRAINED[name]);
      this.changed(plain, changed);
      this.told.textContent = changed ? this.difference(plain) : "As the model was trained.";
    } catch (error) {
      if (turn !== this.turn) return;
      this.told.textContent = error.message;
    }
    this.panel.removeAttribute("aria-busy");
  }

  difference(plain) {
    const [before, after] = [this.explained.plain.texts[1], plain.texts[1]];
    const read = (this.swapped && this.swapped !== this.text ? `Reads “${this.swapped}”. ` : "") + leaked(plain.leak);
    if (after === undefined) return `${read}Changed. The thin marks are what it was before.`;
    return before === after ? `${read}Still “${after}”. The thin marks are what it was before.` : `${read}Was “${before}”, now “${after}”.`;
  }
}

// What a missing mask lets through, where a text is written token by token.
function leaked(share) {
  if (share === null) return "";
  return `Without the mask the future leaks: ${Math.round(100 * share)} % of the attention goes to tokens that come later, which are not there yet when the model writes. `;
}
