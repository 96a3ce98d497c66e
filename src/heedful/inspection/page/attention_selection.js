// What is being looked at: parts of the view change it, and are notified when another part does.

export class Selection extends EventTarget {
  constructor(state) {
    super();
    this.state = state;
  }

  // Set some values, and announce which of them are new.
  change(values) {
    const changed = new Set(Object.keys(values).filter((name) => this.state[name] !== values[name]));
    if (!changed.size) return;
    this.state = { ...this.state, ...values };
    this.dispatchEvent(new CustomEvent("change", { detail: changed }));
  }

  // Call a listener when one of these values changes.
  watch(names, listener) {
    this.addEventListener("change", ({ detail }) => {
      if (names.some((name) => detail.has(name))) listener(this.state);
    });
  }
}
