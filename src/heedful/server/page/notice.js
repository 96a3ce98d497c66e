// The one place where the page says that something did not work.

import { button } from "./dom.js";

let shown = "";

/** Show a sentence, with a button where there is something to do about it. */
export function showNotice(kind, text, label, act) {
  const place = document.getElementById("notice");
  shown = kind;
  place.dataset.kind = kind;
  place.replaceChildren(text);
  if (label) place.append(" ", button(label, act, { class: "small" }));
  place.hidden = false;
}

/** Show what the server remarked on a request that it did carry out. */
export function showRemarks(remarks) {
  if (remarks?.length) showNotice("remark", remarks.join(" "));
  else clearNotice("remark");
}

/** Take back a notice of that kind, or any. */
export function clearNotice(kind) {
  if (kind !== undefined && kind !== shown) return;
  shown = "";
  document.getElementById("notice").hidden = true;
}

/** Say what an error means to the reader, who may try again; fetch gives a TypeError where no server answers. */
export function showError(error, again) {
  const gone = error instanceof TypeError || error.name === "NetworkError";
  const text = gone ? "The server does not answer. Is it still running?" : error.message;
  showNotice("error", text, "Try again", () => {
    clearNotice();
    again();
  });
}
