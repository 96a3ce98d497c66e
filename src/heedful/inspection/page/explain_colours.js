// From numbers of either sign to colours: positive is warm, negative is cold, zero is the background.

const WARM = { light: [190, 78, 16], dark: [255, 158, 92] };
const COLD = { light: [28, 92, 178], dark: [112, 178, 255] };
// Below 1: small numbers can still be told from zero.
const OPACITY_POWER = 0.7;

// A matrix as a picture, one pixel per number; hidden ones stay empty.
export function paintSigned(canvas, sheet, dark) {
  const { values, width, height, largest } = sheet;
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const scheme = dark ? "dark" : "light";
  for (let place = 0; place < values.length; place += 1) {
    const value = values[place];
    if (!Number.isFinite(value) || !largest) continue;
    image.data.set(value < 0 ? COLD[scheme] : WARM[scheme], 4 * place);
    image.data[4 * place + 3] = 255 * (Math.abs(value) / largest) ** OPACITY_POWER;
  }
  context.putImageData(image, 0, 0);
}

export function signedInk(value, dark) {
  return `rgb(${(value < 0 ? COLD : WARM)[dark ? "dark" : "light"].join(" ")})`;
}
