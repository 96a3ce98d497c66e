// What a reader looks at: a part, a head, a token of the text read, and a step of the text written.

export class ExplainState {
  constructor(values) {
    this.values = values;
    this.watchers = [];
  }

  // Call `act` whenever one of some values changes; watchers that are `kept` stay when the steps are redrawn.
  watch(names, act, kept = false) {
    this.watchers.push({ names, act, kept });
  }

  forget() {
    this.watchers = this.watchers.filter(({ kept }) => kept);
  }

  change(values) {
    const changed = Object.keys(values).filter((name) => this.values[name] !== values[name]);
    if (!changed.length) return;
    Object.assign(this.values, values);
    for (const { names, act } of [...this.watchers]) if (names.some((name) => changed.includes(name))) act();
  }

  // The place of the followed token in a sequence.
  place(explained, sequence) {
    const place = explained.isWritten(sequence) ? this.values.step : this.values.token;
    return Math.min(place, Math.max(0, explained.tokens(sequence).length - 1));
  }

  follow(explained, sequence, place) {
    this.change(explained.isWritten(sequence) ? { step: place } : { token: place });
  }
}
