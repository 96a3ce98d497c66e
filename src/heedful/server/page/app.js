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

const TASKS = {
  translation: { name: "Translation", workspace: TranslationWorkspace },
  language_model: { name: "Text completion", workspace: GenerationWorkspace },
  classification: { name: "Text classification", workspace: AnswerWorkspace },
  tagging: { name: "Tagging", workspace: AnswerWorkspace },
  masked_language_model: { name: "Hidden words", workspace: AnswerWorkspace },
  encoder: { name: "Similarity", workspace: AnswerWorkspace },
  image_classifier: { name: "Image classification", workspace: ImageWorkspace },
};

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
  const known = models.filter((model) => model.task in TASKS);
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
  return Object.entries(TASKS).flatMap(([task, { name }]) => {
    const members = models.filter((model) => model.task === task);
    const options = members.map((model) => element("option", { value: model.name }, model.name));
    return options.length ? [element("optgroup", { label: name }, ...options)] : [];
  });
}

function open(model) {
  clearNotice();
  closeChoices(false);
  picker.value = model.name;
  document.title = `${model.name} · heedful`;
  document.getElementById("facts").textContent = facts(model);
  if (!workspaces.has(model.name)) workspaces.set(model.name, new TASKS[model.task].workspace(model));
  const workspace = workspaces.get(model.name);
  place.replaceChildren(workspace.element);
  workspace.focus();
}

function facts(model) {
  const parts = [TASKS[model.task].name];
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
