// Asks for the server's API key, once for all requests that wait for it.

import { button, element } from "./dom.js";

let waiting = null;

/** The key that the reader gives, or null. */
export function askForKey(wasWrong) {
  waiting ??= ask(wasWrong).finally(() => {
    waiting = null;
  });
  return waiting;
}

function ask(wasWrong) {
  const input = element("input", { type: "password", id: "api-key", autocomplete: "off", required: true });
  const form = element(
    "form",
    { method: "dialog" },
    element("h2", { id: "key-title" }, "API key"),
    element("p", {}, wasWrong ? "The server does not know this key." : "This server asks for a key."),
    element("label", { for: "api-key" }, "Key"),
    input,
    element(
      "div",
      { class: "actions" },
      button("Cancel", () => dialog.close(), { class: "quiet" }),
      element("button", { class: "primary", type: "submit" }, "Continue"),
    ),
  );
  const dialog = element("dialog", { class: "key", "aria-labelledby": "key-title" }, form);
  document.body.append(dialog);
  return new Promise((resolve) => {
    let key = null;
    form.addEventListener("submit", () => {
      key = input.value;
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(key);
    });
    dialog.showModal();
  });
}
