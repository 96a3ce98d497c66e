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

const encoder = new TextEncoder();

/** A text, or a label in which bytes that are not a whole character stand as <E4>, as a string of one sign per byte. */
function bytesOf(label, labelled = false) {
  const parts = labelled ? label.split(/(<[89A-F][0-9A-F]>)/) : [label];
  const bytes = parts.flatMap((part, number) => (number % 2 ? [parseInt(part.slice(1), 16)] : [...encoder.encode(part)]));
  return bytes.map((byte) => String.fromCharCode(byte)).join("");
}

/** Where each token's label stands in a text, as {start, end}, or null for what is not part of it. */
export function locateTokens(labels, text) {
  const bytes = bytesOf(text);
  const placeOf = characterOfEachByte(text);
  let cursor = 0;

  function find(token) {
    const start = bytes.indexOf(token, cursor);
    const passed = start < 0 ? "" : text.slice(placeOf[cursor].start, placeOf[start].start);
    return passed.trim().length > 12 ? -1 : start;
  }

  return labels.map((label) => {
    const bare = label.trim();
    if (!bare) return null;
    // Special tokens are not found: nothing moves.
    const token = [bytesOf(bare), bytesOf(bare, true)].find((each) => find(each) >= 0);
    if (token === undefined) return null;
    const start = find(token);
    cursor = start + token.length;
    return { start: placeOf[start].start, end: placeOf[cursor - 1].end };
  });
}

/** For each byte of a text the character that it is a part of, as {start, end}: a token may be less than a character. */
function characterOfEachByte(text) {
  const places = [];
  let start = 0;
  for (const character of text) {
    const place = { start, end: start + character.length };
    for (let left = encoder.encode(character).length; left > 0; left -= 1) places.push(place);
    start = place.end;
  }
  return places;
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
