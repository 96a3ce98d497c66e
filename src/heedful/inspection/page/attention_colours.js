// From weights to colours, on light ground and on dark.

// From no weight to the largest.
const LIGHT = [[255, 255, 255], [214, 230, 243], [120, 180, 218], [32, 110, 178], [8, 44, 98]];
const DARK = [[22, 26, 32], [24, 54, 88], [34, 101, 163], [92, 171, 230], [224, 242, 255]];
// Over an image: from nothing to red and yellow.
const HEAT = [[120, 20, 60], [200, 40, 50], [240, 110, 30], [255, 190, 40], [255, 245, 160]];
const LARGEST_OPACITY = 0.86;

// Whether the element shows light text, as its style decides by the user's preference and the page's switch.
export function isDark(view) {
  const [red, green, blue] = getComputedStyle(view).color.match(/[\d.]+/g).map(Number);
  return red + green + blue > 384;
}

// How much of the scale a weight takes: its root, so that small weights can be told from none.
export function strength(weight, largest) {
  return largest > 0 ? Math.sqrt(Math.min(1, weight / largest)) : 0;
}

function between(stops, share) {
  const place = share * (stops.length - 1);
  const first = Math.min(stops.length - 2, Math.floor(place));
  return stops[first].map((value, channel) => value + (stops[first + 1][channel] - value) * (place - first));
}

const ramps = new Map();

function ramp(name, makeEntry) {
  if (!ramps.has(name)) {
    const table = new Uint8ClampedArray(1024);
    for (let place = 0; place < 256; place += 1) table.set(makeEntry(place / 255), place * 4);
    ramps.set(name, table);
  }
  return ramps.get(name);
}

function scale(dark) {
  return dark
    ? ramp("dark", (share) => [...between(DARK, share), 255])
    : ramp("light", (share) => [...between(LIGHT, share), 255]);
}

export function colour(share, dark) {
  const table = scale(dark);
  const place = Math.round(share * 255) * 4;
  return `rgb(${table[place]} ${table[place + 1]} ${table[place + 2]})`;
}

// The colour that a line between tokens has, with the weight as its opacity.
export function lineColour(share, dark) {
  return dark ? `rgb(120 190 245 / ${share})` : `rgb(20 92 160 / ${share})`;
}

function paintPixels(canvas, rows, columns, table, shareOf) {
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const colours = new Uint32Array(table.buffer);
  for (let place = 0; place < pixels.length; place += 1) {
    pixels[place] = colours[Math.round(shareOf(place) * 255)];
  }
  context.putImageData(image, 0, 0);
}

// A matrix of weights as a picture with one pixel for each.
export function paintWeights(canvas, values, largest, rows, columns, dark) {
  paintPixels(canvas, rows, columns, scale(dark), (place) => strength(values[place], largest));
}

// The same to be laid over an image, from nothing for the smallest weight, in proportion, so that the image is seen.
export function paintHeat(canvas, values, smallest, largest, rows, columns) {
  const heat = ramp("heat", (share) => [...between(HEAT, share), 255 * LARGEST_OPACITY * share]);
  paintPixels(canvas, rows, columns, heat, (place) => (values[place] - smallest) / (largest - smallest || 1));
}
