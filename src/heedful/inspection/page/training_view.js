// The training page: what all its charts share, and its layout.

import { makeChart } from "./chart.js";
import { h } from "./elements.js";
import { scoreFormat, timeOf } from "./scales.js";
import { chartsOf } from "./training_charts.js";
import { choicesOf, dataOf, examplesOf, processesOf, validationsOf, verdictOf } from "./training_tables.js";

const STATES = { finished: "finished", stopped: "stopped by an error", unfinished: "not finished: make the page again to see how it continues" };
const run = JSON.parse(document.getElementById("document").textContent);
const view = { axis: "step", range: [0, 1], smoothing: 0.02, logarithmic: false, cursor: null, moveCursor };
const charts = run.totals.steps ? chartsOf(run).map((chart) => makeChart(chart, view)) : [];

function moveCursor(place) {
  view.cursor = place;
  for (const chart of charts) chart.showCursor();
}

function redraw() {
  const last = view.axis === "step" ? run.totals.steps : run.totals.minutes;
  const first = view.axis === "step" ? 0 : run.steps.minutes?.[0] ?? 0;
  view.range = first < last ? [first, last] : [0, last || 1];
  for (const chart of charts) chart.draw();
}

function change(settings) {
  Object.assign(view, settings);
  redraw();
}

function controls() {
  const axis = (value, text) => h("label", { class: "choice" },
    h("input", { type: "radio", name: "axis", value, checked: view.axis === value, onchange: () => change({ axis: value, cursor: null }) }), h("span", {}, text));
  return h("form", { class: "controls", "aria-label": "How the charts are drawn", onsubmit: (event) => event.preventDefault() },
    h("fieldset", {}, h("legend", {}, "Over"), axis("step", "steps"), axis("minutes", "minutes")),
    h("label", { class: "slider" }, "Smoothing", h("input", { type: "range", min: 0, max: 10, step: 0.5, value: 100 * view.smoothing,
      oninput: (event) => change({ smoothing: event.target.value / 100 }) })),
    h("label", { class: "switch" }, h("input", { type: "checkbox", onchange: (event) => change({ logarithmic: event.target.checked }) }),
      "Logarithmic loss and gradient"),
    h("p", { id: "chart-keys", class: "hint" }, "Point at a chart to read it, or use the arrow keys on it (with Shift: farther; Home, End)."));
}

function themeButton() {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const button = h("button", { type: "button", class: "theme", onclick: () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    show();
  } });
  function show() {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
  }
  system.addEventListener("change", show);
  show();
  return button;
}

function tile(name, value, note) {
  return h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value, note ? h("small", {}, note) : null));
}

function tiles() {
  const { totals, validations } = run;
  const tokens = totals.target_tokens;
  const shown = [tile("steps", totals.steps.toLocaleString("en")), tile("time", timeOf(totals.minutes)),
    tile("targets seen", tokens >= 1e6 ? `${(tokens / 1e6).toFixed(1)} M` : tokens.toLocaleString("en"))];
  if (run.kept !== null) {
    const best = validations[run.kept];
    const chosen = run.kept_by === "lowest held-out loss" ? run.kept_by : `held-out loss with the ${run.kept_by}`;
    shown.push(tile(chosen, best.loss.toFixed(3), `at step ${best.step.toLocaleString("en")}`));
    for (const [name, value] of Object.entries(best.scores)) shown.push(tile(name, scoreFormat(name)(value), "with these weights"));
  }
  return h("dl", { class: "tiles" }, ...shown);
}

const drawing = charts.length
  ? h("section", { "aria-label": "Charts" }, controls(), h("div", { class: "charts" }, ...charts.map((chart) => chart.element)))
  : null;
document.body.append(
  h("header", {}, h("div", {}, h("p", { class: "brand" }, "heedful · training"), h("h1", {}, run.name),
    h("p", { class: "about" }, `${run.family.replace("_", "-")} · ${run.preset} · ${STATES[run.state]}`)), themeButton()),
  h("main", {}, verdictOf(run), tiles(), drawing, examplesOf(run), validationsOf(run), processesOf(run), choicesOf(run), dataOf(run)));
redraw();
