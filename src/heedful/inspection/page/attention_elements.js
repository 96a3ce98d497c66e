// Elements of the page, created without markup: text never becomes HTML.

export function element(tag, properties = {}, ...children) {
  const { class: names, text, on = {}, ...attributes } = properties;
  const made = document.createElement(tag);
  if (names) made.className = names;
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  for (const [event, listener] of Object.entries(on)) made.addEventListener(event, listener);
  made.append(...children.filter((child) => child));
  return made;
}

let groups = 0;

// A row of choices, one of them selected: radio buttons, with their keys and roles.
export function choice(legend, options, chosen, onChange) {
  const name = `attention-choice-${(groups += 1)}`;
  const segments = options.map(({ value, text }) => {
    const input = element("input", { type: "radio", name, value, on: { change: () => onChange(value) } });
    input.checked = value === chosen;
    return element("label", { class: "segment" }, input, element("span", { text }));
  });
  return element("fieldset", { class: "segments" }, element("legend", { text: legend }), ...segments);
}

// A list to choose from, with its label before it.
export function picker(label, options, chosen, onChange) {
  const entries = options.map(({ value, text }) => {
    const option = element("option", { value, text });
    option.selected = String(value) === String(chosen);
    return option;
  });
  const select = element("select", { on: { change: () => onChange(select.value) } }, ...entries);
  return element("label", { class: "picker" }, element("span", { text: label }), select);
}

// One tab stop for many buttons: the arrow keys move between them as they are laid out on the screen.
export function roving(container, selector) {
  const all = () => [...container.querySelectorAll(selector)];
  const enter = (target) => {
    for (const each of all()) each.tabIndex = each === target ? 0 : -1;
  };
  container.addEventListener("focusin", (event) => {
    const target = event.target.closest(selector);
    if (target) enter(target);
  });
  container.addEventListener("keydown", (event) => {
    const target = event.target.closest(selector);
    const next = target && neighbour(all(), target, event.key);
    if (!next) return;
    event.preventDefault();
    enter(next);
    next.focus();
  });
  const first = all().find((each) => each.getAttribute("aria-pressed") === "true") ?? all()[0];
  if (first) enter(first);
}

function neighbour(all, target, key) {
  const place = all.indexOf(target);
  if (key === "ArrowRight") return all[place + 1];
  if (key === "ArrowLeft") return all[place - 1];
  if (key === "Home") return all[0];
  if (key === "End") return all[all.length - 1];
  if (key !== "ArrowDown" && key !== "ArrowUp") return null;
  const from = target.getBoundingClientRect();
  const direction = key === "ArrowDown" ? 1 : -1;
  let best = null;
  let least = Infinity;
  for (const each of all) {
    const to = each.getBoundingClientRect();
    const down = (to.top - from.top) * direction;
    const distance = down * 1000 + Math.abs(to.left - from.left);
    if (down > 1 && distance < least) [best, least] = [each, distance];
  }
  return best;
}
