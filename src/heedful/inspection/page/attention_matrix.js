// One head as a matrix: a row for each query, a column for each key; names stay visible when a long matrix scrolls.

import { element } from "./attention_elements.js";
import { huesOf, isDark, paintWeights } from "./attention_colours.js";

const SMALLEST_CELL = 11;
const LARGEST_CELL = 56;
// The largest share of the window's height that a matrix takes while its cells can shrink.
const SHARE_OF_WINDOW = 0.62;
const LONGEST_NAME = 18;
const NAME_GAP = 6;

function shortName(name) {
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name;
}

// Size a canvas with as many pixels as the screen has there.
function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.ceil(width * ratio);
  canvas.height = Math.ceil(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

// The width available to a panel: everything except what is beside it.
function roomFor(panel) {
  const style = getComputedStyle(panel.parentElement);
  const [, beside] = style.gridTemplateColumns.split(" ");
  return panel.parentElement.clientWidth - (beside ? parseFloat(beside) + parseFloat(style.columnGap) : 0);
}

export class Matrix {
  constructor(selection, view) {
    this.selection = selection;
    this.view = view;
    const row = (event) => this.lookAt({ query: this.placeOf(event).query });
    const column = (event) => this.lookAt({ key: this.placeOf(event).key });
    this.names = element("canvas", { class: "matrix-rows", "aria-hidden": "true", on: { pointermove: row, click: row } });
    this.heads = element("canvas", {
      class: "matrix-columns",
      "aria-hidden": "true",
      on: { pointermove: column, click: column },
    });
    this.body = element("canvas", {
      class: "matrix-body",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "matrix",
      on: {
        pointermove: (event) => this.lookAt(this.placeOf(event)),
        click: (event) => this.lookAt(this.placeOf(event)),
        keydown: (event) => this.step(event),
        focus: () => this.enter(),
      },
    });
    this.corner = element("div", { class: "matrix-corner", "aria-hidden": "true", text: "key →\nquery ↓" });
    this.panel = element("div", { class: "matrix" }, this.corner, this.heads, this.names, this.body);
    this.picture = element("canvas");
    selection.watch(["cell"], () => this.sheet && this.panel.isConnected && this.draw());
  }

  show(sheet, title) {
    this.sheet = sheet;
    this.body.setAttribute("aria-label", `${title}: matrix of weights, use the arrow keys to go from cell to cell`);
    this.font = `12px ${getComputedStyle(this.view).fontFamily}`;
    const measure = this.picture.getContext("2d");
    measure.font = this.font;
    const width = (names) => Math.max(30, ...names.map((name) => measure.measureText(shortName(name)).width));
    this.nameWidth = Math.ceil(width(sheet.queries)) + 2 * NAME_GAP;
    this.headHeight = Math.ceil(width(sheet.keys)) + 2 * NAME_GAP;
    const room = roomFor(this.panel) - this.nameWidth - 2;
    const height = SHARE_OF_WINDOW * window.innerHeight - this.headHeight;
    const fitting = Math.floor(Math.min(room / sheet.keys.length, height / sheet.queries.length));
    this.cell = Math.max(SMALLEST_CELL, Math.min(LARGEST_CELL, fitting));
    const size = [sheet.queries.length, sheet.keys.length];
    paintWeights(this.picture, sheet.values, sheet.largest, size, huesOf(sheet.head), isDark(this.view));
    this.draw();
  }

  draw() {
    const { queries, keys } = this.sheet;
    const { cell } = this;
    const chosen = this.selection.state.cell;
    const [ink, quiet] = [this.view, this.corner].map((each) => getComputedStyle(each).color);
    const body = sized(this.body, keys.length * cell, queries.length * cell);
    body.imageSmoothingEnabled = false;
    body.drawImage(this.picture, 0, 0, keys.length * cell, queries.length * cell);
    if (chosen) this.outline(body, chosen, ink);
    const font = this.font.replace("12px", `${Math.min(12, cell - 1)}px`);
    const names = sized(this.names, this.nameWidth, queries.length * cell);
    Object.assign(names, { font, textAlign: "right", textBaseline: "middle" });
    queries.forEach((name, place) => {
      names.fillStyle = chosen?.query === place ? ink : quiet;
      names.fillText(shortName(name), this.nameWidth - NAME_GAP, (place + 0.5) * cell);
    });
    const heads = sized(this.heads, keys.length * cell, this.headHeight);
    Object.assign(heads, { font, textAlign: "left", textBaseline: "middle" });
    keys.forEach((name, place) => {
      heads.save();
      heads.translate((place + 0.5) * cell, this.headHeight - NAME_GAP);
      heads.rotate(-Math.PI / 2);
      heads.fillStyle = chosen?.key === place ? ink : quiet;
      heads.fillText(shortName(name), 0, 0);
      heads.restore();
    });
  }

  // The chosen row and column, and the cell where they meet.
  outline(context, { query, key }, ink) {
    const { cell } = this;
    const [width, height] = [this.sheet.keys.length * cell, this.sheet.queries.length * cell];
    context.strokeStyle = ink;
    context.globalAlpha = 0.35;
    if (query !== undefined) context.strokeRect(0.5, query * cell + 0.5, width - 1, cell - 1);
    if (key !== undefined) context.strokeRect(key * cell + 0.5, 0.5, cell - 1, height - 1);
    context.globalAlpha = 1;
    context.lineWidth = 2;
    if (query !== undefined && key !== undefined) {
      context.strokeRect(key * cell + 1, query * cell + 1, cell - 2, cell - 2);
    }
  }

  enter() {
    if (!this.selection.state.cell) this.lookAt({ query: 0, key: 0 });
    this.keepInSight();
  }

  // Choose a cell, or only a row or a column; places outside the matrix are ignored.
  lookAt({ query, key }) {
    const { queries, keys } = this.sheet;
    if (query < 0 || key < 0 || query >= queries.length || key >= keys.length) return;
    const { cell } = this.selection.state;
    if (!cell || cell.query !== query || cell.key !== key) this.selection.change({ cell: { query, key } });
  }

  placeOf(event) {
    const box = this.body.getBoundingClientRect();
    return {
      query: Math.floor((event.clientY - box.top) / this.cell),
      key: Math.floor((event.clientX - box.left) / this.cell),
    };
  }

  step(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const { query = 0, key = 0 } = this.selection.state.cell ?? {};
    this.lookAt({ query: query + move[0], key: key + move[1] });
    this.keepInSight();
  }

  keepInSight() {
    const { query = 0, key = 0 } = this.selection.state.cell;
    const { panel, cell } = this;
    const [left, top] = [key * cell, query * cell];
    const [width, height] = [panel.clientWidth - this.nameWidth, panel.clientHeight - this.headHeight];
    panel.scrollLeft = Math.min(left, Math.max(panel.scrollLeft, left + cell - width));
    panel.scrollTop = Math.min(top, Math.max(panel.scrollTop, top + cell - height));
  }
}
