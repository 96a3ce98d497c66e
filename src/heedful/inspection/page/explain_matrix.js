// A matrix as a picture whose cells can be read: by pointer, or by the arrow keys.

import { element } from "./attention_elements.js";
import { huesOf, isDark, paintWeights } from "./attention_colours.js";
import { paintSigned } from "./explain_colours.js";
import { readableNumber } from "./explain_document.js";

const LONGEST_NAME = 14;
const GAP = 6;
const [LOWEST_ROW, HIGHEST_ROW, HEIGHT] = [12, 26, 300];
const WIDEST_CELL = 44;

function cut(name) {
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name;
}

export class MatrixPicture {
  constructor(state, explained, view) {
    Object.assign(this, { state, explained, view, cell: null });
    this.canvas = element("canvas", {
      class: "explain-canvas",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "matrix",
      on: {
        pointermove: (event) => this.read(this.placeOf(event)),
        pointerleave: () => this.read(null),
        click: (event) => this.follow(this.placeOf(event)),
        keydown: (event) => this.move(event),
        blur: () => this.read(null),
      },
    });
    this.readout = element("p", { class: "explain-readout", "aria-live": "polite" });
    this.scroller = element("div", { class: "explain-scroller" }, this.canvas);
    this.panel = element("div", { class: "explain-matrix" }, this.scroller, this.readout);
    this.picture = element("canvas");
  }

  show(sheet, hues) {
    this.sheet = sheet;
    const { step, height, width } = sheet;
    const size = `${height} by ${width}`;
    this.canvas.setAttribute("aria-label", `${step.title}, a matrix of ${size}: use the arrow keys to read its cells`);
    if (step.name.endsWith(".weights")) {
      paintWeights(this.picture, sheet.values, sheet.largest, [height, width], hues, isDark(this.view));
    } else {
      paintSigned(this.picture, sheet, isDark(this.view));
    }
    this.draw();
  }

  measure() {
    const { rows, columns, height, width } = this.sheet;
    this.font = `12px ${getComputedStyle(this.view).fontFamily}`;
    const context = this.picture.getContext("2d");
    context.font = this.font;
    const widest = (names) => Math.ceil(Math.max(...names.map((name) => context.measureText(cut(name)).width)));
    this.left = widest(rows) + 2 * GAP;
    this.top = columns ? widest(columns) + 2 * GAP : 0;
    this.rowHeight = Math.max(LOWEST_ROW, Math.min(HIGHEST_ROW, HEIGHT / height));
    // Minus the padding, which leaves room for the outline of a cell at the edge.
    const room = Math.max(160, (this.scroller.clientWidth || 600) - 2 * GAP) - this.left;
    const least = columns ? 13 : Math.min(1, room / width);
    this.cellWidth = Math.max(least, Math.min(columns ? Math.max(WIDEST_CELL, this.rowHeight) : WIDEST_CELL, room / width));
    return [this.left + this.cellWidth * width, this.top + this.rowHeight * height];
  }

  draw() {
    const [width, height] = this.measure();
    const ratio = window.devicePixelRatio || 1;
    const { canvas } = this;
    canvas.width = Math.ceil(width * ratio);
    canvas.height = Math.ceil(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.imageSmoothingEnabled = this.cellWidth < 1;
    context.drawImage(this.picture, this.left, this.top, width - this.left, height - this.top);
    const ink = getComputedStyle(this.view).color;
    this.hidden(context, ink);
    this.names(context, ink);
    this.outlines(context, ink);
  }

  // What a mask hides is crossed out, and rows not written yet are faint.
  hidden(context, ink) {
    const { values, height, width } = this.sheet;
    context.strokeStyle = ink;
    context.globalAlpha = 0.3;
    context.beginPath();
    for (let place = 0; place < values.length; place += 1) {
      if (values[place] !== -Infinity) continue;
      const [x, y] = [this.left + (place % width) * this.cellWidth, this.top + Math.floor(place / width) * this.rowHeight];
      context.moveTo(x + 3, y + this.rowHeight - 3);
      context.lineTo(x + this.cellWidth - 3, y + 3);
    }
    context.stroke();
    context.globalAlpha = 1;
    const written = this.writtenRows();
    if (written === height) return;
    context.globalCompositeOperation = "destination-out";
    context.globalAlpha = 0.86;
    context.fillRect(this.left, this.top + written * this.rowHeight, this.cellWidth * width, (height - written) * this.rowHeight);
    context.globalCompositeOperation = "source-over";
    context.globalAlpha = 1;
  }

  writtenRows() {
    const { rowSequence, height, letters } = this.sheet;
    if (!rowSequence || !this.explained.isWritten(rowSequence) || letters === "T") return height;
    return Math.min(height, this.state.place(this.explained, rowSequence) + 1);
  }

  names(context, ink) {
    const { rows, columns } = this.sheet;
    const followed = this.followed();
    Object.assign(context, { fillStyle: ink, textAlign: "right", textBaseline: "middle" });
    const written = this.writtenRows();
    rows.forEach((name, place) => {
      context.font = place === followed ? `600 ${this.font}` : this.font;
      context.globalAlpha = place === followed ? 1 : place < written ? 0.65 : 0.25;
      context.fillText(cut(name), this.left - GAP, this.top + (place + 0.5) * this.rowHeight);
    });
    context.font = this.font;
    context.textAlign = "left";
    context.globalAlpha = 0.65;
    (columns ?? []).forEach((name, place) => {
      context.save();
      context.translate(this.left + (place + 0.5) * this.cellWidth, this.top - GAP);
      context.rotate(-Math.PI / 2);
      context.fillText(cut(name), 0, 0);
      context.restore();
    });
    context.globalAlpha = 1;
  }

  followed() {
    const { rowSequence } = this.sheet;
    return rowSequence === null ? -1 : this.state.place(this.explained, rowSequence);
  }

  outlines(context, ink) {
    const { width } = this.sheet;
    context.strokeStyle = ink;
    context.lineWidth = 1.5;
    const followed = this.followed();
    if (followed >= 0) {
      const y = this.top + followed * this.rowHeight;
      context.strokeRect(this.left + 0.75, y + 0.75, width * this.cellWidth - 1.5, this.rowHeight - 1.5);
    }
    if (!this.cell) return;
    const [x, y] = [this.left + this.cell.column * this.cellWidth, this.top + this.cell.row * this.rowHeight];
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, Math.max(3, this.cellWidth) + 2, this.rowHeight + 2);
  }

  placeOf(event) {
    const box = this.canvas.getBoundingClientRect();
    const place = {
      row: Math.floor((event.clientY - box.top - this.top) / this.rowHeight),
      column: Math.floor((event.clientX - box.left - this.left) / this.cellWidth),
    };
    return place.row < 0 || place.row >= this.sheet.height ? null : place;
  }

  // Show the value of a cell.
  read(cell) {
    const { height, width, rows, columns, values } = this.sheet;
    const inside = cell && cell.row >= 0 && cell.column >= 0 && cell.row < this.writtenRows() && cell.column < width;
    const next = inside ? cell : null;
    if (next?.row === this.cell?.row && next?.column === this.cell?.column) return;
    this.cell = next;
    this.draw();
    if (!next) {
      this.readout.textContent = "";
      return;
    }
    const column = columns ? `“${columns[next.column]}”` : `column ${next.column + 1}`;
    const row = height > 1 || rows.length > 1 ? `“${rows[next.row]}”, ` : "";
    const value = values[next.row * width + next.column];
    this.readout.textContent = `${row}${column}: ${readableNumber(value)}`;
    this.readout.dataset.value = value;
  }

  follow(cell) {
    if (cell && this.sheet.rowSequence) this.state.follow(this.explained, this.sheet.rowSequence, cell.row);
  }

  move(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const { row, column } = this.cell ?? { row: Math.max(0, this.followed()), column: -move[1] };
    const bounded = (value, count) => Math.max(0, Math.min(count - 1, value));
    this.read({
      row: bounded(row + move[0], this.writtenRows()),
      column: bounded(column + move[1], this.sheet.width),
    });
  }
}
