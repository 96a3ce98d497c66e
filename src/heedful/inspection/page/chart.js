// One chart: lines over the steps or the minutes of a run, with a cursor that all charts share.

import { h, svg } from "./elements.js";
import { exactNumber, makeScale, placeBefore, shortNumber, smoothed } from "./scales.js";

const HEIGHT = 190;
const MARGIN = { top: 10, right: 12, bottom: 24, left: 48 };
let numberOfCharts = 0;

// `chart` holds title, about, series, and, where they apply, format, axisFormat, logarithmic, reference, and atLeast,
// for an axis from zero to that or more. A series holds name, tone (its colour), points (step, minutes), values, and,
// where they apply, low and high (a band), smooth, dots and thin (drawn, but not in the legend). All charts share
// `view`: axis, range, smoothing, logarithmic, cursor, and moveCursor to move it.
export function makeChart(chart, view) {
  const format = chart.format ?? exactNumber;
  const name = `chart-${++numberOfCharts}`;
  const legend = h("dl", { class: "legend" });
  const lines = svg("g");
  const cursor = svg("g", { class: "cursor" });
  const picture = svg("svg", { "aria-hidden": "true", height: HEIGHT }, lines, cursor);
  const plot = h("div", { class: "plot", tabindex: 0, role: "group", "aria-labelledby": `${name}-title`,
    "aria-describedby": "chart-keys", onkeydown: (event) => moveByKey(event, view, speak),
    onpointermove: (event) => pointAt(event), onpointerdown: (event) => pointAt(event),
    onpointerleave: () => view.moveCursor(null), onblur: () => view.moveCursor(null) }, picture);
  const spoken = h("p", { class: "spoken", role: "status" });
  const element = h("figure", { class: "card chart" },
    h("figcaption", {}, h("h3", { id: `${name}-title` }, chart.title), h("p", { class: "about" }, chart.about)),
    legend, plot, spoken);
  let scales = null;
  let drawn = [];

  function draw() {
    const width = plot.clientWidth;
    if (!width) return;
    drawn = chart.series.map((series) => ({ ...series, x: series.points[view.axis],
      y: series.smooth ? smoothed(series.values, view.smoothing) : series.values }));
    scales = makeScales(chart, drawn, view, width);
    picture.setAttribute("width", width);
    picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    lines.replaceChildren(...axes(scales, width, chart, view), clip(name, width),
      svg("g", { "clip-path": `url(#${name}-clip)` }, ...drawn.flatMap((series) => band(series, scales)),
        ...drawn.flatMap((series) => line(series, scales)), ...reference(chart, scales, width)));
    showCursor();
  }

  function showCursor() {
    if (!scales) return;
    const at = view.cursor;
    const rows = values(at);
    legend.replaceChildren(...rows.map(({ series, y }) => h("div", { class: `tone-${series.tone}` },
      h("dt", {}, series.name), h("dd", {}, y === null ? "–" : format(y)))),
      h("div", { class: "where" }, at === null ? "" : whereOf(at)));
    if (at === null) return cursor.replaceChildren();
    const place = scales.x.place(at);
    const marks = rows.filter(({ y }) => y !== null && scales.shows(y))
      .map(({ series, x, y }) => svg("circle", { class: `mark tone-${series.tone}`, r: 4, cx: scales.x.place(x), cy: scales.y.place(y) }));
    cursor.replaceChildren(svg("line", { x1: place, x2: place, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }), ...marks);
  }

  // What each line of the legend shows: the point at the cursor or the last before it, or, without a cursor, the last.
  function values(at) {
    return drawn.filter((series) => !series.thin).map((series) => {
      const index = at === null ? series.x.length - 1 : placeBefore(series.x, at);
      const there = at === null || series.x[index] <= at;
      return { series, x: series.x[index], y: there ? series.y[index] : null };
    });
  }

  function whereOf(at) {
    return view.axis === "step" ? `step ${Math.round(at).toLocaleString("en")}` : `minute ${exactNumber(at)}`;
  }

  function pointAt(event) {
    if (!scales) return;
    const value = scales.x.value(event.clientX - plot.getBoundingClientRect().left);
    view.moveCursor(Math.min(view.range[1], Math.max(view.range[0], value)));
  }

  function speak() {
    const said = values(view.cursor).map(({ series, y }) => `${series.name} ${y === null ? "none" : format(y)}`);
    spoken.textContent = `${whereOf(view.cursor)}: ${said.join(", ")}`;
  }

  new ResizeObserver(draw).observe(plot);
  return { element, draw, showCursor };
}

function moveByKey(event, view, speak) {
  const [low, high] = view.range;
  const stride = ((high - low) / 100) * (event.shiftKey ? 10 : 1);
  const from = view.cursor ?? high;
  const places = { ArrowLeft: from - stride, ArrowRight: from + stride, Home: low, End: high };
  if (event.key === "Escape") view.moveCursor(null);
  else if (event.key in places) {
    event.preventDefault();
    view.moveCursor(Math.min(high, Math.max(low, places[event.key])));
    speak();
  }
}

function makeScales(chart, drawn, view, width) {
  // For a band, everything except its highest spikes.
  const peaks = drawn.filter((series) => series.high).map((series) => [...series.high].sort((a, b) => a - b)[Math.floor(series.high.length * 0.98)]);
  const shown = [...drawn.flatMap((series) => series.y), ...peaks].filter((value) => value !== null);
  const logarithmic = Boolean(chart.logarithmic) && view.logarithmic && shown.some((value) => value > 0);
  const usable = logarithmic ? shown.filter((value) => value > 0) : shown;
  let [low, high] = usable.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
  if (!usable.length) [low, high] = [0, 1];
  const fromZero = chart.atLeast !== undefined && !logarithmic;
  if (fromZero) [low, high] = [Math.min(0, low), Math.max(high, chart.atLeast)];
  if (logarithmic) [low, high] = [low / 1.1, high * 1.1];
  else {
    const room = (high - low || Math.abs(high) || 1) * 0.06;
    [low, high] = [fromZero && low === 0 ? 0 : low - room, high + room];
  }
  return {
    x: makeScale(view.range[0], view.range[1], MARGIN.left, width - MARGIN.right, false),
    y: makeScale(low, high, HEIGHT - MARGIN.bottom, MARGIN.top, logarithmic),
    shows: (value) => !logarithmic || value > 0,
  };
}

function axes(scales, width, chart, view) {
  const bottom = HEIGHT - MARGIN.bottom;
  const format = chart.axisFormat ?? shortNumber;
  const rows = scales.y.ticks(4).flatMap((value) => {
    const y = scales.y.place(value);
    return [svg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y, y2: y }),
      svg("text", { class: "tick", x: MARGIN.left - 8, y: y + 4, "text-anchor": "end" }, format(value))];
  });
  const columns = scales.x.ticks(Math.max(2, Math.floor(width / 80))).map((value) =>
    svg("text", { class: "tick", x: scales.x.place(value), y: bottom + 17, "text-anchor": "middle" },
      view.axis === "step" ? shortNumber(value) : `${shortNumber(value)} min`));
  return [...rows, svg("line", { class: "axis", x1: MARGIN.left, x2: width - MARGIN.right, y1: bottom, y2: bottom }), ...columns];
}

function clip(name, width) {
  const size = { x: MARGIN.left, y: 0, width: Math.max(0, width - MARGIN.left - MARGIN.right + 6), height: HEIGHT - MARGIN.bottom };
  return svg("clipPath", { id: `${name}-clip` }, svg("rect", size));
}

function reference(chart, scales, width) {
  if (!chart.reference || !scales.shows(chart.reference.value)) return [];
  const y = scales.y.place(chart.reference.value);
  return [svg("line", { class: "reference", x1: MARGIN.left, x2: width - MARGIN.right, y1: y, y2: y }),
    svg("text", { class: "tick", x: width - MARGIN.right - 4, y: y - 5, "text-anchor": "end" }, chart.reference.name)];
}

function pathOf(x, y, scales) {
  let path = "";
  let pen = "M";
  y.forEach((value, index) => {
    if (value === null || !scales.shows(value)) pen = "M";
    else {
      path += `${pen}${scales.x.place(x[index]).toFixed(1)} ${scales.y.place(value).toFixed(1)}`;
      pen = "L";
    }
  });
  return path;
}

function band(series, scales) {
  if (!series.low) return [];
  const there = series.x.map((_, index) => index).filter((index) => scales.shows(series.low[index]) && series.high[index] !== null);
  const at = (index, values) => `${scales.x.place(series.x[index]).toFixed(1)} ${scales.y.place(values[index]).toFixed(1)}`;
  const around = [...there.map((index) => at(index, series.high)), ...there.reverse().map((index) => at(index, series.low))];
  return around.length ? [svg("path", { class: `band tone-${series.tone}`, d: `M${around.join("L")}Z` })] : [];
}

function line(series, scales) {
  const parts = [svg("path", { class: `line tone-${series.tone}${series.thin ? " thin" : ""}`, d: pathOf(series.x, series.y, scales) })];
  if (series.dots) {
    series.y.forEach((value, index) => {
      if (value !== null && scales.shows(value)) {
        parts.push(svg("circle", { class: `dot tone-${series.tone}`, r: 3, cx: scales.x.place(series.x[index]), cy: scales.y.place(value) }));
      }
    });
  }
  return parts;
}
