// The data of the view: sequences, maps and rollouts, whose weights are unpacked on first use.

import { valuesOfCodes } from "./packing.js";

const KIND_NAMES = {
  encoder: "Encoder",
  decoder: "Decoder",
  cross: "Cross-attention",
  content: "Content stream",
  query: "Query stream",
  image: "Patches",
};

// 0, then 900 mantissas for each exponent.
const MANTISSAS = 900;
const EXPONENTS = 21;

export const MEAN = "mean";
export const ROLLOUT = "rollout";

export class AttentionDocument {
  constructor(plain) {
    this.plain = plain;
    this.image = plain.image ?? null;
    this.outputs = plain.outputs ?? [];
    this.kinds = [...new Set(plain.maps.map((map) => map.kind))];
    this.loading = new Map();
    this.shownLabels = Object.fromEntries(
      Object.entries(plain.sequences).map(([name, tokens]) => [name, tokens.map(shownToken)]),
    );
  }

  kindName(kind) {
    return KIND_NAMES[kind] ?? kind;
  }

  maps(kind) {
    return this.plain.maps.filter((map) => map.kind === kind);
  }

  map(kind, layer) {
    return this.plain.maps.find((map) => map.kind === kind && map.layer === layer);
  }

  rollout(kind) {
    return (this.plain.rollouts ?? []).find((rollout) => rollout.kind === kind);
  }

  labels(sequence) {
    return this.shownLabels[sequence];
  }

  // The weights of a map or a rollout, head by head and row by row.
  values(entry) {
    if (!this.loading.has(entry)) this.loading.set(entry, unpackedValues(entry));
    return this.loading.get(entry);
  }

  // One matrix: a head, the mean of a layer's heads, or the rollout of a kind.
  async sheet({ kind, layer, head }) {
    const entry = head === ROLLOUT ? this.rollout(kind) : this.map(kind, layer);
    const all = await this.values(entry);
    const [queries, keys] = [this.labels(entry.queries), this.labels(entry.keys)];
    const size = queries.length * keys.length;
    const values = head === ROLLOUT ? all : ofHead(all, head, size);
    let largest = 0;
    for (let place = 0; place < values.length; place += 1) if (values[place] > largest) largest = values[place];
    return { head, queries, keys, values, largest, square: entry.queries === entry.keys };
  }

  // How spread out a head's weights are, and how far it looks; means and rollouts have no such measures.
  measures({ kind, layer, head }) {
    if (typeof head !== "number") return null;
    const map = this.map(kind, layer);
    return { entropy: map.entropy[head].toFixed(2), distance: map.mean_distance[head].toFixed(1) };
  }

  // The name of a choice of kind, layer and head.
  title({ kind, layer, head }) {
    if (head === ROLLOUT) return `${this.kindName(kind)}, rollout`;
    const place = `${this.kindName(kind)}, layer ${layer + 1}`;
    return head === MEAN ? `${place}, mean of all heads` : `${place}, head ${head + 1}`;
  }
}

export function numberOfHeads(map) {
  return map.entropy.length;
}

// A weight with three significant digits, as the data has it.
export function shownWeight(weight) {
  const number = Number(weight.toPrecision(3));
  return number > 0 && number < 0.0001 ? number.toExponential() : String(number);
}

export function shownToken(token) {
  const text = token.replaceAll("\n", "↵").replaceAll("\t", "⇥").replace(/^[ \u2581]/, "·");
  return text || "∅";
}

function ofHead(all, head, size) {
  if (head !== MEAN) return all.subarray(head * size, (head + 1) * size);
  const heads = all.length / size;
  const mean = new Float32Array(size);
  for (let head = 0; head < heads; head += 1) {
    for (let place = 0; place < size; place += 1) mean[place] += all[head * size + place] / heads;
  }
  return mean;
}

async function unpackedValues(entry) {
  if (!entry.packed) return Float32Array.from(entry.weights.flat(Infinity));
  return valuesOfCodes(entry.packed, weightsOfCodes());
}

let weightTable = null;

function weightsOfCodes() {
  if (weightTable) return weightTable;
  weightTable = new Float32Array(1 + EXPONENTS * MANTISSAS);
  for (let code = 1; code < weightTable.length; code += 1) {
    const exponent = Math.floor((code - 1) / MANTISSAS);
    weightTable[code] = (100 + ((code - 1) % MANTISSAS)) / 10 ** (2 + exponent);
  }
  return weightTable;
}
