// One stop of the Tab key for many small buttons; the arrow keys move between them.

/** Make the buttons of a container such a group; call `mend` when buttons were added or removed. */
export function rove(container, selector) {
  const all = () => [...container.querySelectorAll(selector)];
  const enter = (chosen) => {
    for (const each of all()) each.tabIndex = each === chosen ? 0 : -1;
  };
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  container.addEventListener("focusin", (event) => {
    if (event.target.matches(selector)) enter(event.target);
  });
  container.addEventListener("keydown", (event) => {
    const buttons = all();
    const place = buttons.indexOf(event.target);
    if (place < 0) return;
    let next = place + (steps[event.key] ?? 0);
    if (event.key === "Home") next = 0;
    if (event.key === "End") next = buttons.length - 1;
    if (next === place && !(event.key in steps)) return;
    event.preventDefault();
    buttons[Math.min(Math.max(next, 0), buttons.length - 1)].focus();
  });
  return {
    mend() {
      const buttons = all();
      if (buttons.length && !buttons.some((each) => each.tabIndex === 0)) enter(buttons[0]);
    },
  };
}
