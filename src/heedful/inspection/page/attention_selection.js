// What is being looked at: the parts of the view change it, and are told when another part did.

export class Selection extends EventTarget {
  constructor(state) {
    super();
    this.state = state;
  }

  // Take over some values, and tell which of them are new.
  change(values) {
    const changed = new Set(Object.keys(values).filter((name) => this.state[name] !== values[name]));
    if (!changed.size) return;
    this.state = { ...this.state, ...values };
    this.dispatchEvent(new CustomEvent("change", { detail: changed }));
  }

  // Call a listener when one of these values has changed.
  watch(names, listener) {
    this.addEventListener("change", ({ detail }) => {
      if (names.some((name) => detail.has(name))) listener(this.state);
    });
  }
}
