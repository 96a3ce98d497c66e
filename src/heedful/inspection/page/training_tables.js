// The page's words and tables: the verdict, the choices, the data, the held-out examples.

import { h } from "./elements.js";
import { scoreFormat, timeOf } from "./scales.js";

const MOST_OUTPUTS = 12;

export function verdictOf(run) {
  if (run.findings.length) {
    return h("section", { class: "verdict", "aria-label": "Diagnosis" }, ...run.findings.map((finding) =>
      h("article", { class: finding.fault ? "finding fault" : "finding advice" },
        h("h2", {}, h("span", { class: "sign", "aria-hidden": "true" }, finding.fault ? "!" : "i"), finding.title),
        h("p", {}, finding.evidence), h("p", {}, h("strong", {}, "What to do: "), finding.advice))));
  }
  const healthy = run.verdict === "healthy";
  return h("section", { class: "verdict", "aria-label": "Diagnosis" },
    h("article", { class: healthy ? "finding healthy" : "finding" },
      h("h2", {}, h("span", { class: "sign", "aria-hidden": "true" }, healthy ? "✓" : "…"), healthy ? "Healthy" : "Too early to judge"),
      h("p", {}, healthy
        ? `Looked for, and not found: ${run.checks.join(", ")}.`
        : "A run is judged after 50 steps, when it ends or from its third validation on.")));
}

function table(caption, heads, rows) {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, h("table", {},
    h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, ...rows.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, first), ...rest.map((cell) => h("td", {}, cell)))))));
}

export function choicesOf(run) {
  return section("Choices", table("Choices of the run", ["what", "which", "why"],
    run.choices.map(({ name, value, reason }) => [name, value, reason])));
}

export function dataOf(run) {
  if (!run.data_report.length) return section("Data", h("p", { class: "card words" }, "Nothing was changed or left out."));
  const rows = run.data_report.map(({ rule, action, count, first }) =>
    [rule, action, count.toLocaleString("en"), first.files.join(" and ") + (first.line === null ? "" : `, line ${first.line}`)]);
  return section("Data", h("p", { class: "words" }, "Each of them is listed in run/data-report.jsonl."),
    table("What was changed or left out", ["rule", "what was done", "how often", "first in"], rows));
}

export function processesOf(run) {
  if (!run.processes) return null;
  const seconds = (value) => `${value.toPrecision(3)} s`;
  const rows = run.processes.ranks.map(({ rank, seconds: usual, longest, own }) => [`rank ${rank}`, seconds(usual), seconds(longest), seconds(own)]);
  return section("Processes", h("p", { class: "words" }, `${run.processes.words}.`),
    table("Step times of each process", ["process", "a step (median)", "the longest", "without waiting (median)"], rows));
}

export function validationsOf(run) {
  if (!run.validations.length) return null;
  const scores = [...new Set(run.validations.flatMap((row) => Object.keys(row.scores)))];
  const chosen = ` (${run.kept_by.replace(" held-out loss", "")}: these weights are kept)`;
  const rows = run.validations.map((row, number) => [row.step.toLocaleString("en"), timeOf(row.minutes),
    row.loss === null ? "–" : row.loss.toFixed(4) + (number === run.kept ? chosen : ""),
    ...scores.map((name) => (row.scores[name] === undefined ? "–" : scoreFormat(name)(row.scores[name])))]);
  return section("Validations", table("Validations", ["step", "time", "loss", ...scores], rows));
}

export function examplesOf(run) {
  const measured = run.validations.filter((row) => row.examples.length);
  if (!measured.length) return null;
  return section("Held-out examples over time", h("div", { class: "examples" },
    ...measured[0].examples.map((first, number) => exampleCard(first, number, measured))));
}

function exampleCard(first, number, measured) {
  const shown = evenly(measured.filter((row) => row.examples.length > number), MOST_OUTPUTS);
  const names = Object.keys(first);
  const changing = names.filter((name) => shown.some((row) => row.examples[number][name] !== first[name]));
  const fixed = names.filter((name) => !changing.includes(name));
  return h("article", { class: "card example" },
    h("dl", { class: "given" }, ...fixed.flatMap((name) => [h("dt", {}, name), h("dd", { dir: "auto" }, first[name])])),
    ...changing.map((name) => h("ol", { "aria-label": name }, ...shown.map((row, place) => {
      const text = row.examples[number][name];
      const same = place > 0 && text === shown[place - 1].examples[number][name];
      return h("li", { class: same ? "same" : null }, h("span", { class: "when" }, `step ${row.step.toLocaleString("en")}`),
        h("span", { dir: "auto" }, same ? "the same" : text || "(empty)"));
    }))));
}

function evenly(rows, most) {
  if (rows.length <= most) return rows;
  return Array.from({ length: most }, (_, number) => rows[Math.round((number * (rows.length - 1)) / (most - 1))]);
}

function section(title, ...children) {
  return h("section", { "aria-label": title }, h("h2", {}, title), ...children);
}
