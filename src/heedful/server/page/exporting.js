// Copy and download of what a workspace holds.

import { announce, button } from "./dom.js";

/** The two buttons; `content` gives the text at the moment of the click. */
export function exportButtons(content, fileName) {
  const copy = button("Copy", async () => {
    await copyText(content());
    announce("Copied.");
    copy.textContent = "Copied";
    setTimeout(() => {
      copy.textContent = "Copy";
    }, 1500);
  }, { class: "quiet" });
  const download = button("Download", () => downloadText(content(), fileName), { class: "quiet" });
  return [copy, download];
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return;
  } catch {
    // Browsers give the clipboard only to local pages and to https, and may refuse it: an older way remains.
  }
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "hidden";
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

export function downloadText(text, fileName) {
  const type = fileName.endsWith(".json") ? "application/json" : "text/plain";
  const address = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = document.createElement("a");
  link.href = address;
  link.download = fileName;
  link.click();
  URL.revokeObjectURL(address);
}
