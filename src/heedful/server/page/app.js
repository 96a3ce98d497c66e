// The page: which models there are, and the workspace of the one that is chosen.

import { AnswerWorkspace } from "./answers.js";
import { call } from "./api.js";
import { closeChoices } from "./choices.js";
import { element } from "./dom.js";
import { GenerationWorkspace } from "./generation.js";
import { ImageWorkspace } from "./images.js";
import { languageName } from "./languages.js";
import { clearNotice, showError, showNotice } from "./notice.js";
import { themeButton } from "./theme.js";
import { TranslationWorkspace } from "./translation.js";

/** The workspace for what a model takes and gives, or undefined if this page has none. */
function workspaceFor(model) {
  if (model.takes === "image") return ImageWorkspace;
  if (model.takes === "prompt") return GenerationWorkspace;
  if (model.verbs.includes("alternatives")) return TranslationWorkspace;
  return AnswerWorkspace.shows(model) ? AnswerWorkspace : undefined;
}

const picker = document.getElementById("model");
const place = document.getElementById("workspace");
// Each model's workspace is made once, and keeps its text while another is shown.
const workspaces = new Map();

async function start() {
  let models = [];
  try {
    ({ models } = await call("/api/models"));
  } catch (error) {
    showError(error, start);
    return;
  }
  const known = models.filter((model) => workspaceFor(model));
  if (!known.length) {
    showNotice("error", "The server serves no model that this page can show.");
    return;
  }
  picker.replaceChildren(...groups(known));
  picker.disabled = false;
  const choose = (name) => open(known.find((model) => model.name === name) ?? known[0]);
  picker.addEventListener("change", () => {
    location.hash = encodeURIComponent(picker.value);
  });
  window.addEventListener("hashchange", () => choose(hashedName()));
  choose(hashedName());
}

function hashedName() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

/** The models as options, grouped by what they do. */
function groups(models) {
  const titles = [...new Set(models.map((model) => model.title))];
  return titles.map((title) => {
    const members = models.filter((model) => model.title === title);
    const options = members.map((model) => element("option", { value: model.name }, model.name));
    return element("optgroup", { label: title }, ...options);
  });
}

function open(model) {
  clearNotice();
  closeChoices(false);
  picker.value = model.name;
  document.title = `${model.name} · heedful`;
  document.getElementById("facts").textContent = facts(model);
  if (!workspaces.has(model.name)) workspaces.set(model.name, new (workspaceFor(model))(model));
  const workspace = workspaces.get(model.name);
  place.replaceChildren(workspace.element);
  workspace.focus();
}

function facts(model) {
  const parts = [model.title];
  if (model.source_language && model.target_language) {
    parts.push(`${languageName(model.source_language)} to ${languageName(model.target_language)}`);
  }
  if (model.labels) parts.push(`${model.labels.length} labels`);
  if (model.family) parts.push(model.family.replaceAll("_", "-"));
  if (model.parameters) {
    const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
    parts.push(`${short.format(model.parameters)} parameters`);
  }
  return parts.join(" · ");
}

themeButton(document.getElementById("theme"));
start();
