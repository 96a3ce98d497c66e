// Numbers for charts: ticks, places on an axis, words for values, and smoothing.

const LARGE = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];

export function shortNumber(value) {
  const size = Math.abs(value);
  for (const [unit, name] of LARGE) if (size >= unit) return `${Number((value / unit).toPrecision(4))}${name}`;
  if (size !== 0 && size < 0.001) return value.toExponential().replace("e-", "e−");
  return String(Number(value.toPrecision(4))).replace("-", "−");
}

export function exactNumber(value) {
  const size = Math.abs(value);
  if (size >= 10000) return Math.round(value).toLocaleString("en");
  if (size !== 0 && size < 0.001) return value.toExponential(2).replace("e-", "e−");
  return String(Number(value.toPrecision(4))).replace("-", "−");
}

export function percent(value) {
  return `${(100 * value).toFixed(1)} %`;
}

// Scores that are shares are shown in percent, as usual.
export function scoreFormat(name) {
  return ["accuracy", "macro F1"].includes(name) ? percent : exactNumber;
}

export function timeOf(minutes) {
  if (minutes < 1) return `${Math.round(60 * minutes)} s`;
  if (minutes < 60) return `${Number(minutes.toPrecision(3))} min`;
  return `${Math.floor(minutes / 60)} h ${Math.floor(minutes % 60)} min`;
}

function niceTicks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  const ticks = [];
  for (let number = Math.ceil(low / step - 1e-9); number * step <= high + step * 1e-9; number++) {
    ticks.push(Number((number * step).toPrecision(12)));
  }
  return ticks;
}

function logTicks(low, high, count) {
  const factors = Math.log10(high / low) > count ? [1] : Math.log10(high / low) > count / 3 ? [1, 3] : [1, 2, 5];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const factor of factors) {
      const value = Number((factor * 10 ** power).toPrecision(12));
      if (value >= low * 0.9999 && value <= high * 1.0001) ticks.push(value);
    }
  }
  return ticks.length > 1 ? ticks : niceTicks(low, high, count);
}

// An axis from low to high on pixels from `start` to `end`.
export function makeScale(low, high, start, end, logarithmic) {
  const convert = logarithmic ? Math.log10 : (value) => value;
  const [first, last] = [convert(low), convert(high)];
  const span = last - first || 1;
  return {
    place: (value) => start + ((convert(value) - first) / span) * (end - start),
    value: (place) => first + ((place - start) / (end - start)) * span,
    ticks: (count) => (logarithmic ? logTicks : niceTicks)(low, high, count),
  };
}

// An exponential mean that remembers about `share` of all points; the start is not pulled towards zero.
export function smoothed(values, share) {
  const points = share * values.length;
  if (points < 1) return values;
  const keep = 1 - 1 / (1 + points);
  let total = 0;
  let weight = 0;
  return values.map((value) => {
    if (value === null) return null;
    total = keep * total + value;
    weight = keep * weight + 1;
    return total / weight;
  });
}

// The last index whose value is not above `wanted`, or 0.
export function placeBefore(sorted, wanted) {
  let [low, high] = [0, sorted.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (sorted[middle] <= wanted) low = middle;
    else high = middle - 1;
  }
  return low;
}
