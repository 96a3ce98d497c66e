// 16-bit numbers from text, as pack() in weights.py writes them.

// 13 bits in two characters out of 91.
const ALPHABET = Array.from({ length: 94 }, (_, place) => String.fromCharCode(33 + place)).filter(
  (letter) => !'"<\\'.includes(letter),
);
const BITS = 13;

// The value of each code, from a table of all codes: all low bytes come before all high bytes.
export async function valuesOfCodes(packed, table) {
  const stream = new Blob([packedBytes(packed)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const count = planes.length / 2;
  const values = new Float32Array(count);
  for (let place = 0; place < count; place += 1) values[place] = table[planes[place] | (planes[count + place] << 8)];
  return values;
}

function packedBytes({ bytes, text }) {
  const places = new Uint8Array(128);
  ALPHABET.forEach((letter, place) => (places[letter.charCodeAt(0)] = place));
  const found = new Uint8Array(bytes);
  let bits = 0;
  let waiting = 0;
  let place = 0;
  for (let index = 0; index < text.length; index += 2) {
    const pair = places[text.charCodeAt(index)] * ALPHABET.length + places[text.charCodeAt(index + 1)];
    bits = (bits << BITS) | pair;
    waiting += BITS;
    while (waiting >= 8 && place < bytes) {
      waiting -= 8;
      found[place++] = (bits >> waiting) & 255;
    }
    bits &= (1 << waiting) - 1;
  }
  return found;
}
