// Words of a text, tokens of a text, and what an attention document says about them.

const SPACELESS = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]/;

/** The words of a text as {text, start, end}; scripts without spaces are cut as the browser knows them. */
export function splitWords(text) {
  const words = [];
  for (const match of text.matchAll(/\S+/g)) {
    const start = match.index;
    if (!SPACELESS.test(match[0]) || !Intl.Segmenter) {
      words.push({ text: match[0], start, end: start + match[0].length });
      continue;
    }
    for (const { segment, index } of new Intl.Segmenter(undefined, { granularity: "word" }).segment(match[0])) {
      words.push({ text: segment, start: start + index, end: start + index + segment.length });
    }
  }
  return words;
}

/** Where each token's label stands in a text, as {start, end}, or null for what is no part of it. */
export function locateTokens(labels, text) {
  let cursor = 0;
  return labels.map((label) => {
    const bare = label.trim();
    if (!bare) return null;
    // Special tokens, and characters cut in two by the tokenizer, are not found: nothing moves.
    const start = text.indexOf(bare, cursor);
    if (start < 0 || text.slice(cursor, start).trim().length > 12) return null;
    cursor = start + bare.length;
    return { start, end: cursor };
  });
}

/**
 * How much a stretch of the target attended to each word of the source, by cross-attention, the mean over layers
 * and heads: [{start, end, text, weight}].
 */
export function sourceWeights(attention, source, target, stretch) {
  const maps = attention.maps.filter((map) => map.kind === "cross");
  const targetSpans = locateTokens(attention.sequences[maps[0]?.queries] ?? [], target);
  const rows = targetSpans.flatMap((span, row) => (span && overlap(span, stretch) ? [row] : []));
  const sourceSpans = locateTokens(attention.sequences[maps[0]?.keys] ?? [], source);
  const words = splitWords(source).map((word) => ({ ...word, weight: 0 }));
  const count = maps.reduce((sum, map) => sum + map.weights.length, 0) * rows.length;
  for (const map of maps) {
    for (const head of map.weights) {
      for (const row of rows) {
        head[row].forEach((weight, key) => {
          const word = sourceSpans[key] && words.find((each) => overlap(each, sourceSpans[key]));
          if (word) word.weight += weight / count;
        });
      }
    }
  }
  return words;
}

function overlap(one, other) {
  return one.start < other.end && other.start < one.end;
}
