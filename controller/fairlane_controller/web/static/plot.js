// SPDX-License-Identifier: Apache-2.0
// A time chart on a canvas: lines, steps and fills over one window of time, a legend that switches lines off, a crosshair shared by all charts.

import { clock } from "./format.js";
import { make, put } from "./tables.js";

const LEFT = 46, RIGHT = 10, TOP = 8, BOTTOM = 20;
const charts = new Set();
let hoverTime = null;

function niceStep(span, most, whole) {
  const raw = Math.max(span / Math.max(1, most), whole ? 1 : 0), power = 10 ** Math.floor(Math.log10(raw));
  for (const m of [1, 2, whole && power < 10 ? 3 : 2.5, 5, 10]) if (m * power >= raw) return m * power;
  return 10 * power;
}

function timeStep(span, most) {
  for (const s of [5, 10, 15, 30, 60, 120, 300]) if (span / s <= most) return s;
  return 600;
}

function nearest(points, t) {
  return points.reduce((best, point) => (best && Math.abs(best[0] - t) <= Math.abs(point[0] - t) ? best : point), null);
}

function swatch(series) {
  const found = make("span", series.dashed ? "swatch dashed" : "swatch");
  found.style.borderTopColor = series.color;
  return found;
}

export class Chart {
  // form: a value in a tip, and at the axis; whole: the quantity is a count, and so are the ticks.
  constructor(parent, { form, least = 1, whole = false }) {
    Object.assign(this, { form, least, whole, off: new Set(), series: [], from: 0, to: 1 });
    this.head = make("h2"); this.legend = make("div", "legend"); this.canvas = make("canvas"); this.tip = make("div", "tip");
    this.canvas.setAttribute("role", "img");
    this.tip.hidden = true;
    this.card = make("section", "card", this.head, this.legend, this.canvas, this.tip);
    parent.append(this.card);
    this.canvas.addEventListener("pointermove", (event) => {
      const box = this.canvas.getBoundingClientRect();
      const part = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
      hoverTime = this.from + Math.min(1, Math.max(0, part)) * (this.to - this.from);
      this.showTip(event.clientX - box.left, event.clientY - box.top);
      repaintAll();
    });
    this.canvas.addEventListener("pointerleave", () => {
      hoverTime = null; this.tip.hidden = true;
      repaintAll();
    });
    new ResizeObserver(() => this.paint()).observe(this.canvas);
    charts.add(this);
  }

  // series: [{name, color, points: [[t, v|null]], fill, step, dashed, wide, quiet}]
  draw(title, series, from, to) {
    this.card.hidden = !series.length;  // the program has nothing for it
    put(this.head, title);
    this.canvas.setAttribute("aria-label", title);
    this.series = series; this.from = from; this.to = to;
    this.drawLegend();
    this.paint();
  }

  drawLegend() {
    const key = this.series.map((s) => `${s.name}${s.color}${s.dashed}`).join("|");
    if (key === this.legendKey) return;
    this.legendKey = key;
    this.legend.replaceChildren(...this.series.map((s) => {
      const item = make("button", this.off.has(s.name) ? "off" : "", swatch(s), s.name);
      item.type = "button";
      item.title = "show or hide";
      item.addEventListener("click", () => {
        item.classList.toggle("off", !this.off.delete(s.name) && this.off.add(s.name));
        this.paint();
      });
      return item;
    }));
  }

  shown() { return this.series.filter((s) => !this.off.has(s.name)); }

  showTip(x, y) {
    const rows = this.shown().map((s) => [s, nearest(s.points, hoverTime)]).filter(([, hit]) => hit?.[1] != null && Math.abs(hit[0] - hoverTime) < 5);
    this.tip.hidden = !rows.length;
    if (!rows.length) return;
    this.tip.replaceChildren(make("b", "", clock(hoverTime)), ...rows.slice(0, 14).map(([s, [, v]]) => make("div", "", swatch(s), s.name, make("span", "end", this.form[0](v)))));
    const room = this.card.clientWidth, wide = this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(4, x + 24 + wide > room ? x - wide : x + 24)}px`;
    this.tip.style.top = `${this.canvas.offsetTop + Math.min(y, 60)}px`;
  }

  paint() {
    const ratio = window.devicePixelRatio || 1, width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (!width || !height) return;
    Object.assign(this.canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });  // which clears it
    const style = getComputedStyle(document.documentElement), ink = (name) => style.getPropertyValue(name).trim();
    const g = this.canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    const stroke = (color, x1, y1, x2, y2) => { g.strokeStyle = color; g.beginPath(); g.moveTo(x1, y1); g.lineTo(x2, y2); g.stroke(); };
    const shown = this.shown();
    let top = this.least;
    for (const s of shown) for (const [t, v] of s.points) if (v != null && t >= this.from && t <= this.to && v > top) top = v;
    top *= 1.06;
    const innerW = width - LEFT - RIGHT, innerH = height - TOP - BOTTOM;
    const x = (t) => LEFT + ((t - this.from) / (this.to - this.from)) * innerW;
    const y = (v) => TOP + (1 - v / top) * innerH;
    g.font = "11px system-ui, sans-serif";
    g.fillStyle = ink("--muted");
    g.lineWidth = 1;
    g.textBaseline = "middle";
    g.textAlign = "right";
    const stepY = niceStep(top, innerH / 38, this.whole), ticks = [];
    for (let v = 0; v <= top; v += stepY) {
      stroke(ink("--grid"), LEFT, y(v), width - RIGHT, y(v));
      g.fillText(this.form[1](v), LEFT - 6, y(v));
      ticks.push(this.form[1](v));
    }
    this.canvas.dataset.ticks = ticks.join(" ");
    g.textAlign = "center";
    g.textBaseline = "alphabetic";
    const stepX = timeStep(this.to - this.from, innerW / 80);
    for (let t = Math.ceil(this.from / stepX) * stepX; t <= this.to; t += stepX) {
      if (x(t) < LEFT + 22 || x(t) > width - RIGHT - 22) continue;
      g.fillText(clock(t), x(t), height - 5);
    }
    g.save();
    g.beginPath(); g.rect(LEFT, 0, innerW, height - BOTTOM + 1); g.clip();
    for (const s of shown) this.trace(g, s, x, y);
    if (hoverTime != null && hoverTime >= this.from && hoverTime <= this.to) {
      g.setLineDash([2, 3]); g.lineWidth = 1;
      stroke(ink("--muted"), x(hoverTime), TOP, x(hoverTime), height - BOTTOM);
    }
    g.restore();
    this.canvas.dataset.points = shown.reduce((n, s) => n + s.points.filter((p) => p[1] != null && p[0] >= this.from).length, 0);
  }

  trace(g, s, x, y) {
    g.strokeStyle = s.color;
    g.lineWidth = s.wide ? 2 : 1.5;
    g.setLineDash(s.dashed ? [5, 4] : []);
    g.lineJoin = "round";
    let run = [];
    const flush = () => {
      if (run.length) {
        g.beginPath();
        run.forEach(([px, py], i) => {
          if (i === 0) g.moveTo(px, py);
          else { if (s.step) g.lineTo(px, run[i - 1][1]); g.lineTo(px, py); }
        });
        if (run.length === 1) g.lineTo(run[0][0] + 2, run[0][1]);
        g.stroke();
        if (s.fill) {
          g.lineTo(run[run.length - 1][0], y(0)); g.lineTo(run[0][0], y(0)); g.closePath();
          g.globalAlpha = 0.13; g.fillStyle = s.color; g.fill(); g.globalAlpha = 1;
        }
      }
      run = [];
    };
    let before = null;
    for (const [t, v] of s.points) {
      if (v == null || (before != null && t - before > 5)) flush();
      if (v != null) run.push([x(t), y(v)]);
      before = t;
    }
    flush();
  }
}

export function repaintAll() { charts.forEach((c) => c.paint()); }
