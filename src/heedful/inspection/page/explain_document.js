// The data of the page: parts of a model, their steps, and numbers that are unpacked on first use.

import { valuesOfCodes } from "./packing.js";

export const ANSWERS = "answers";
const COLUMN_TITLES = { encoder: "Encoder", decoder: "Decoder", model: "Model" };

export class ExplainDocument {
  constructor(plain) {
    this.plain = plain;
    this.loading = new Map();
    const answering = plain.answers.length ? [answersPart(plain)] : [];
    this.parts = [...plain.parts, ...answering];
    this.names = Object.fromEntries(
      Object.entries(plain.sequences).map(([name, tokens]) => [name, tokens.map(readableToken)]),
    );
  }

  part(name) {
    return this.parts.find((part) => part.name === name) ?? this.parts[0];
  }

  // The encoder and the decoder, or the one column of other models.
  columns() {
    const names = [...new Set(this.parts.map((part) => part.column))];
    return names.map((name) => ({
      name,
      title: COLUMN_TITLES[name],
      parts: this.parts.filter((part) => part.column === name),
    }));
  }

  steps(part) {
    return part.groups.flatMap((group) => group.steps);
  }

  // The sequence whose tokens are followed through a part.
  sequence(part) {
    if (part.name === ANSWERS) return this.plain.sequences.target ? "target" : "text";
    return this.steps(part).find((step) => step.letters.includes("T"))?.rows ?? "text";
  }

  tokens(sequence) {
    return this.names[sequence] ?? [];
  }

  // Whether a sequence is written token by token.
  isWritten(sequence) {
    const { written } = this.plain;
    return written !== null && (sequence === written || sequence === "next" || (written === "next" && sequence === "text"));
  }

  numberOfHeads(part) {
    const step = this.steps(part).find(({ letters }) => letters === "HTV");
    return step ? step.shape[0] : 0;
  }

  values(step) {
    if (!this.loading.has(step)) this.loading.set(step, unpacked(step));
    return this.loading.get(step);
  }

  // The matrix of a step, of one head where it has several; rows and columns are named, or numbered.
  async sheet(step, head, heads) {
    const all = await this.values(step);
    const [height, width] = step.shape.length > 1 ? step.shape.slice(-2) : rowOrColumn(step);
    let from = 0;
    if (step.shape.length === 3) {
      // Heads that share keys and values have fewer of them.
      from = Math.floor((head * step.shape[0]) / Math.max(heads, step.shape[0])) * height * width;
    }
    const letter = step.letters.at(step.shape.length > 1 ? -2 : 0);
    const values = all.subarray(from, from + height * width);
    return {
      step,
      values,
      height,
      width,
      largest: largestOf(values),
      rows: "TS".includes(letter) ? this.tokens(step.rows) : numbered(height),
      rowSequence: "TS".includes(letter) ? step.rows : null,
      columns: step.columns ? this.tokens(step.columns) : null,
      letters: step.letters,
    };
  }
}

function answersPart(plain) {
  const column = plain.parts.some((part) => part.column === "decoder") ? "decoder" : "model";
  return { name: ANSWERS, title: "Logits and probabilities", column, block: false, groups: [] };
}

function rowOrColumn(step) {
  return step.letters === "D" ? [1, step.shape[0]] : [step.shape[0], 1];
}

function numbered(count) {
  return Array.from({ length: count }, (_, place) => String(place + 1));
}

function largestOf(values) {
  let largest = 0;
  for (const value of values) {
    const size = Math.abs(value);
    if (size > largest && size < Infinity) largest = size;
  }
  return largest;
}

async function unpacked(step) {
  if (step.integers) return Float32Array.from(step.integers.flat(Infinity));
  const halves = await valuesOfCodes(step.packed, halfTable());
  const factor = 2 ** -step.packed.power;
  return halves.map((half) => half * factor);
}

let halves = null;

// The value of every half-precision number, by its bits.
function halfTable() {
  if (halves) return halves;
  halves = new Float32Array(2 ** 16);
  for (let code = 0; code < halves.length; code += 1) {
    const [exponent, mantissa] = [(code >> 10) & 31, code & 1023];
    let size = exponent ? (1 + mantissa / 1024) * 2 ** (exponent - 15) : mantissa * 2 ** -24;
    if (exponent === 31) size = mantissa ? NaN : Infinity;
    halves[code] = code >> 15 ? -size : size;
  }
  return halves;
}

export function readableToken(token) {
  const text = token.replaceAll("\n", "↵").replaceAll("\t", "⇥").replace(/^[ \u2581]/, "·");
  return text || "∅";
}

// A number as the page shows it: four significant digits, and a true minus.
export function readableNumber(value) {
  if (value === -Infinity) return "−∞";
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value).replace("-", "−");
  const size = Math.abs(value);
  const text = size >= 1e-3 && size < 1e5 ? String(Number(value.toPrecision(4))) : value.toExponential(2);
  return text.replaceAll("-", "−");
}
