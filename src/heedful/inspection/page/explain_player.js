// The tokens of a sequence, one of which is followed; if they are written one after another, they can be played.

import { element, roving } from "./attention_elements.js";

const STEP_MILLISECONDS = 1200;

export class Player {
  constructor({ explained, state }) {
    Object.assign(this, { explained, state, timer: null, sequence: null });
    this.title = element("h2", { class: "explain-follow" });
    this.list = element("div", { class: "explain-tokens", role: "group", "aria-label": "Token to follow" });
    const turn = (text, label, act) => element("button", { type: "button", class: "explain-turn", text, "aria-label": label, on: { click: act } });
    this.playing = turn("▶ Play", "Play the steps", () => (this.timer ? this.stop() : this.play()));
    this.back = turn("‹", "Step back", () => this.go(-1));
    this.forth = turn("›", "Step forward", () => this.go(1));
    this.told = element("span", { class: "explain-told", "aria-live": "polite" });
    this.bar = element("div", { class: "explain-player" }, this.back, this.playing, this.forth, this.told);
    this.panel = element("section", { class: "explain-follow-panel", "aria-label": "Token to follow" }, this.title, this.list, this.bar);
    state.watch(["part"], () => this.show());
    state.watch(["token", "step"], () => this.mark());
    this.show();
  }

  show() {
    const { explained, state } = this;
    const sequence = explained.sequence(explained.part(state.values.part));
    const written = explained.isWritten(sequence);
    this.bar.hidden = !written;
    if (!written) this.stop();
    this.title.textContent = written ? "The steps of the decoder" : "Follow a token";
    if (sequence !== this.sequence) {
      this.sequence = sequence;
      const chips = explained.tokens(sequence).map((text, place) =>
        element("button", { type: "button", class: "explain-token", text, on: { click: () => this.choose(place) } }),
      );
      this.list.replaceChildren(...chips);
      roving(this.list, "button");
    }
    this.mark();
  }

  choose(place) {
    this.stop();
    this.state.follow(this.explained, this.sequence, place);
  }

  mark() {
    const { explained, state, sequence } = this;
    const place = state.place(explained, sequence);
    const written = explained.isWritten(sequence);
    [...this.list.children].forEach((chip, number) => {
      chip.setAttribute("aria-pressed", String(number === place));
      chip.classList.toggle("is-unwritten", written && number > place);
    });
    if (!written) return;
    const [count, next] = [explained.tokens(sequence).length, explained.tokens("next")[place]];
    this.told.textContent = `Step ${place + 1} of ${count}: reads “${explained.tokens(sequence)[place]}”, writes “${next}”`;
    this.back.disabled = place === 0;
    this.forth.disabled = place === count - 1;
  }

  go(by) {
    const { explained, state, sequence } = this;
    const place = state.place(explained, sequence) + by;
    if (place >= 0 && place < explained.tokens(sequence).length) state.follow(explained, sequence, place);
  }

  play() {
    const { explained, state } = this;
    if (state.place(explained, this.sequence) === explained.tokens(this.sequence).length - 1) state.follow(explained, this.sequence, 0);
    this.playing.textContent = "❚❚ Pause";
    this.timer = setInterval(() => {
      this.go(1);
      if (this.forth.disabled) this.stop();
    }, STEP_MILLISECONDS);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.playing.textContent = "▶ Play";
  }
}
