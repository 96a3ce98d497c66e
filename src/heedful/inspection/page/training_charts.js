// The charts of a run.

import { percent, scoreFormat, shortNumber } from "./scales.js";

const KINDS = { encoder: "encoder", decoder: "decoder", cross: "decoder to source", self: "self-attention",
  content: "content stream", query: "query stream" };
const TONES = ["blue", "orange", "green", "violet"];

const wholePercent = (value) => `${Number((100 * value).toPrecision(3))} %`;

export function chartsOf(run) {
  const validated = { step: run.validations.map((row) => row.step), minutes: run.validations.map((row) => row.minutes) };
  return [lossChart(run, validated), ...scoreCharts(run, validated), ...stepCharts(run), ...gainChart(run, validated),
    ...entropyChart(run, validated)];
}

function lossChart(run, validated) {
  const { steps } = run;
  const training = { name: "training", tone: "blue", points: steps, values: steps.loss, low: steps.loss_low,
    high: steps.loss_high, smooth: true };
  const heldOut = { name: "held-out", tone: "orange", points: validated, values: run.validations.map((row) => row.loss), dots: true };
  return { title: "Loss", about: "Nats per target; lower is better.", logarithmic: true,
    series: run.validations.length ? [training, heldOut] : [training] };
}

function scoreCharts(run, validated) {
  const names = [...new Set(run.validations.flatMap((row) => Object.keys(row.scores)))];
  return names.map((name) => {
    const better = name === "bits per byte" ? "lower is better" : "higher is better";
    const values = run.validations.map((row) => row.scores[name] ?? null);
    return { title: name === "BLEU" ? name : name[0].toUpperCase() + name.slice(1), about: `On held-out data; ${better}.`,
      format: scoreFormat(name), axisFormat: scoreFormat(name) === percent ? wholePercent : shortNumber,
      series: [{ name: "held-out", tone: "orange", points: validated, values, dots: true }] };
  });
}

function stepCharts(run) {
  const { steps, unit } = run;
  const clipped = run.clip_norm > 0 ? { value: run.clip_norm, name: "clipped above" } : null;
  return [
    { title: "Learning rate", about: "As the schedule set it.", atLeast: 0,
      series: [{ name: "rate", tone: "green", points: steps, values: steps.learning_rate }] },
    { title: "Gradient norm", about: "Before clipping. Spikes are batches that would have thrown the model off.",
      logarithmic: true, reference: clipped,
      series: [{ name: "norm", tone: "violet", points: steps, values: steps.gradient_norm, smooth: true,
        low: steps.gradient_norm, high: steps.gradient_norm_high }] },
    { title: "Speed", about: `${unit[0].toUpperCase()}${unit.slice(1)} per second, validations left out.`, atLeast: 0,
      series: [{ name: `${unit}/s`, tone: "blue", points: steps, values: steps.tokens_per_second, smooth: true }] },
    { title: "Padding", about: "The share of a batch that is padding.", atLeast: 0.05, format: percent, axisFormat: wholePercent,
      series: [{ name: "padding", tone: "orange", points: steps, values: steps.padding, smooth: true }] },
  ];
}

function gainChart(run, validated) {
  const values = run.validations.map((row) => row.input_gain);
  if (values.every((value) => value === null)) return [];
  return [{ title: "Worth of the input", about: "How much the held-out loss grows with inputs that belong to other answers. Near zero, the input is ignored.",
    atLeast: 0.1, series: [{ name: "nats per target", tone: "green", points: validated, values, dots: true }] }];
}

function entropyChart(run, validated) {
  const kinds = [...new Set(run.validations.flatMap((row) => Object.keys(row.attention_entropy)))];
  if (!kinds.length) return [];
  const series = kinds.flatMap((kind, number) => {
    const rows = run.validations.map((row) => row.attention_entropy[kind] ?? []);
    const tone = TONES[number % TONES.length];
    const mean = rows.map((layers) => (layers.length ? layers.reduce((sum, value) => sum + value, 0) / layers.length : null));
    const layers = Math.max(...rows.map((row) => row.length));
    const thin = layers < 2 ? [] : Array.from({ length: layers }, (_, layer) => ({ name: "", tone, thin: true,
      points: validated, values: rows.map((row) => row[layer] ?? null) }));
    return [...thin, { name: KINDS[kind] ?? kind, tone, points: validated, values: mean, dots: true }];
  });
  return [{ title: "Attention entropy", about: "Of all layers; 100 % spreads evenly over all tokens, 0 % looks at one. Thin lines are single layers.",
    atLeast: 1, format: percent, axisFormat: wholePercent, series }];
}
