// Elements from data: text goes in as text, never as markup.

/** An element; "on..." properties are listeners; "class", "role", "for" and names with a hyphen are attributes. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class" || key === "role" || key === "for" || key.includes("-")) made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children);
  return made;
}

/** A button that does one thing. */
export function button(label, act, properties = {}) {
  return element("button", { type: "button", onclick: act, ...properties }, label);
}

/** A small field for a number, with its label; a number that it does not allow becomes the nearest that it does. */
export function numberField(label, value, properties = {}) {
  const changed = () => {
    putIntoBounds(input);
    properties.onchange?.();
  };
  const input = element("input", { type: "number", value, inputMode: "decimal", ...properties, onchange: changed });
  return { input, row: element("label", { class: "setting" }, element("span", {}, label), input) };
}

function putIntoBounds(input) {
  if (input.validity.rangeUnderflow) input.value = input.min;
  else if (input.validity.rangeOverflow) input.value = input.max;
  else if (input.validity.stepMismatch) input.stepDown();
}

/** The number in a field, or null where it is empty or out of its bounds while it is being typed. */
export function numberIn(input) {
  return input.value.trim() && input.validity.valid ? Number(input.value) : null;
}

/** A function that runs once its caller has been quiet for that many milliseconds. */
export function debounced(act, milliseconds) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...values), milliseconds);
  };
}

/** Say something to users of screen readers. */
export function announce(text) {
  document.getElementById("announcement").textContent = text;
}

export function percent(probability) {
  const value = probability * 100;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  return `${value >= 10 ? value.toFixed(0) : value.toFixed(1)} %`;
}
