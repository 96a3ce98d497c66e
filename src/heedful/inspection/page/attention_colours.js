// From weights to colours, on a light or dark background: lightness shows the weight, hue shows the head.

// Hues in OKLCH, ordered so that neighbouring heads differ most, for colour-blind eyes too: blue, orange,
// green, magenta, cyan, olive, violet, red.
const HEAD_HUES = [255, 60, 165, 335, 215, 105, 295, 28];
// From yellow to violet: a mean of heads, or a rollout, has all hues.
const MIXED_HUES = [105, 290];
const MIXED = "mixed";
const HEAT = "heat";
// Over an image: [share, lightness, chroma, hue], from violet to red and yellow.
const HEAT_STOPS = [[0, 0.3, 0.13, 305], [0.35, 0.48, 0.19, 352], [0.65, 0.68, 0.19, 395], [1, 0.95, 0.14, 464]];
const LARGEST_OPACITY = 0.76;
// Even a small weight tints the image, and medium ones leave it visible.
const SMALLEST_OPACITY = 0.12;
const OPACITY_BEND = 1.4;
// The lightness nearest to the background that a weight above zero has, that of the strongest colour, and the chroma.
const LIGHT_ENDS = { faint: 0.965, strong: 0.27, chroma: 0.13 };
const DARK_ENDS = { faint: 0.27, strong: 0.95, chroma: 0.13 };
// Below 1: there are most visible steps where most weights are.
const BEND = 0.85;
const STEPS = 256;

// Whether the element shows light text, as its style decides by the user's preference and the page's switch.
export function isDark(view) {
  const [red, green, blue] = getComputedStyle(view).color.match(/[\d.]+/g).map(Number);
  return red + green + blue > 384;
}

// The hue of a head, or all hues for a mean of heads and for a rollout.
export function huesOf(head) {
  return typeof head === "number" ? HEAD_HUES[head % HEAD_HUES.length] : MIXED;
}

// The colours of an overlay on an image.
export const IMAGE_HUES = HEAT;

// How much of the scale a weight takes: its square root, so that small weights can be told from none.
export function strength(weight, largest) {
  return largest > 0 ? Math.sqrt(Math.max(0, Math.min(1, weight / largest))) : 0;
}

// The weight that takes a share of the scale.
export function weightAt(share, largest) {
  return share * share * largest;
}

// Lightness, chroma and hue as red, green and blue (Ottosson, 2020).
function fromOklch(lightness, chroma, hue) {
  const [a, b] = [Math.cos, Math.sin].map((turn) => chroma * turn((hue * Math.PI) / 180));
  const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const short = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
    -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
    -0.0041960863 * long - 0.7034186147 * medium + 1.707614701 * short,
  ];
  return linear.map((value) => 255 * (value <= 0.0031308 ? 12.92 * Math.max(0, value) : 1.055 * value ** (1 / 2.4) - 0.055));
}

function headColour(hues, share, dark) {
  const { faint, strong, chroma } = dark ? DARK_ENDS : LIGHT_ENDS;
  // Neither end has room for much chroma: colours that are nearly white or nearly black have none.
  const colourful = chroma * Math.sin(Math.PI * (0.12 + 0.66 * share));
  const [from, to] = dark ? MIXED_HUES.toReversed() : MIXED_HUES;
  return fromOklch(faint + (strong - faint) * share ** BEND, colourful, hues === MIXED ? from + (to - from) * share : hues);
}

function heatColour(share) {
  const after = Math.max(1, HEAT_STOPS.findIndex(([place]) => place >= share));
  const [from, to] = [HEAT_STOPS[after - 1], HEAT_STOPS[after]];
  const between = (share - from[0]) / (to[0] - from[0]);
  return fromOklch(...from.slice(1).map((value, part) => value + (to[part + 1] - value) * between));
}

const tables = new Map();

// Colours with their opacity for all shares of the scale; only a weight of zero has none.
function colourTable(hues, dark) {
  const name = `${hues} ${dark}`;
  if (!tables.has(name)) {
    const table = new Uint8ClampedArray(4 * STEPS);
    for (let step = 1; step < STEPS; step += 1) {
      const share = step / (STEPS - 1);
      const opacity = SMALLEST_OPACITY + (LARGEST_OPACITY - SMALLEST_OPACITY) * share ** OPACITY_BEND;
      const colour = hues === HEAT ? [...heatColour(share), 255 * opacity] : [...headColour(hues, share, dark), 255];
      table.set(colour, 4 * step);
    }
    tables.set(name, table);
  }
  return tables.get(name);
}

// The colour of lines and bars, with a given opacity.
export function inkOf(hues, dark, opacity = 1) {
  const colour = hues === HEAT ? heatColour(0.6) : headColour(hues, dark ? 0.62 : 0.55, dark);
  return `rgb(${colour.map(Math.round).join(" ")} / ${opacity})`;
}

// A matrix of weights as a picture, one pixel for each.
export function paintWeights(canvas, values, largest, [rows, columns], hues, dark) {
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const colours = new Uint32Array(colourTable(hues, dark).buffer);
  const factor = largest > 0 ? 1 / largest : 0;
  for (let place = 0; place < pixels.length; place += 1) {
    const value = values[place];
    // Rounded up: what is not zero is never painted as zero.
    if (value > 0) pixels[place] = colours[Math.min(STEPS - 1, Math.ceil(Math.sqrt(value * factor) * (STEPS - 1)))];
  }
  context.putImageData(image, 0, 0);
}
