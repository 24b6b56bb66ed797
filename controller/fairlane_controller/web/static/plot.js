// SPDX-License-Identifier: Apache-2.0
// A chart over time as SVG: lines, axes, a legend with the values at the crosshair, which all charts share.

const WIDTH = 600, HEIGHT = 190, LEFT = 46, TOP = 8, RIGHT = WIDTH - 10, BOTTOM = HEIGHT - 20;
const MAX_GAP_S = 5, MAX_POINTS = 400;
const COLORS = ["#0072b2", "#d55e00", "#009e73", "#b8528f", "#e69f00", "#56b4e9", "#8a5a2b", "#7a6ff0", "#5f9e2f", "#c04040"];
const colors = new Map();  // a line has its colour for as long as the page is open
const hidden = new Set();
let crosshair = null;

export const clock = (unixSeconds) => new Date(unixSeconds * 1000).toLocaleTimeString("en-GB");

export function make(tag, className, ...content) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...content);
  return element;
}

function svg(tag, attributes, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

const formats = { notation: "compact", maximumSignificantDigits: 3 };
const number = (value) => value.toLocaleString("en", formats);

function colorOf(name) {
  if (!colors.has(name)) colors.set(name, COLORS[colors.size % COLORS.length]);
  return colors.get(name);
}

// The smallest of 1, 2, 5, 10, … that makes at most 5 steps.
function niceStep(span) {
  let step = 1;
  for (let i = 0; span / step > 5; i++) step *= i % 3 === 1 ? 2.5 : 2;
  return step;
}

export class Chart {
  constructor(parent, redraw) {
    this.head = make("h2");
    this.legend = make("div", "legend");
    this.picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
    this.card = make("section", "card", this.head, this.legend, this.picture);
    parent.append(this.card);
    this.picture.onpointermove = (event) => {
      const box = this.picture.getBoundingClientRect();
      crosshair = ((event.clientX - box.left) / box.width * WIDTH - LEFT) / (RIGHT - LEFT);
      redraw();
    };
    this.picture.onpointerleave = () => {
      crosshair = null;
      redraw();
    };
    this.legend.onclick = (event) => {
      const name = event.target.closest("button")?.dataset.name;
      if (!hidden.delete(name)) hidden.add(name);
      redraw();
    };
  }

  // lines: [{name, dashed, points: [[t, value or null]]}]
  draw(title, unit, lines, from, to) {
    this.card.hidden = !lines.length;
    this.head.textContent = unit ? `${title}, ${unit}` : title;
    this.picture.setAttribute("aria-label", title);
    this.picture.dataset.points = Math.max(0, ...lines.map((line) => line.points.length));
    const at = crosshair === null ? to : from + crosshair * (to - from);
    while (this.legend.children.length > lines.length) this.legend.lastChild.remove();
    while (this.legend.children.length < lines.length) this.legend.append(make("button", "", make("span"), make("span")));
    lines.forEach((line, i) => {
      const item = this.legend.children[i], [swatch, text] = item.children;
      item.className = hidden.has(line.name) ? "off" : "";
      item.dataset.name = line.name;
      swatch.className = line.dashed ? "swatch dashed" : "swatch";
      swatch.style.color = colorOf(line.name);
      const value = line.points.findLast(([t]) => t <= at)?.[1];
      text.textContent = `${line.name} ${value == null ? "-" : number(value)}`;
    });
    const shown = lines.filter((line) => !hidden.has(line.name));
    const top = 1.06 * Math.max(4, ...shown.flatMap((line) => line.points.map(([, value]) => value ?? 0)));
    const x = (t) => (LEFT + (t - from) / (to - from) * (RIGHT - LEFT)).toFixed(1);
    const y = (value) => (BOTTOM - value / top * (BOTTOM - TOP)).toFixed(1);
    const parts = [];
    for (let value = 0, step = niceStep(top); value <= top; value += step) {
      parts.push(svg("path", { class: "grid", d: `M${LEFT} ${y(value)}H${RIGHT}` }));
      parts.push(svg("text", { class: "value", x: LEFT - 6, y: y(value) }, number(value)));
    }
    const step = [15, 30, 60].find((seconds) => (to - from) / seconds <= 8) ?? 120;
    for (let t = Math.ceil(from / step) * step; x(t) < WIDTH - 26; t += step) parts.push(svg("text", { class: "time", x: x(t), y: HEIGHT - 5 }, clock(t)));
    for (const line of shown) {
      parts.push(svg("path", { class: line.dashed ? "line dashed" : "line", stroke: colorOf(line.name), d: path(line.points, x, y) }));
    }
    if (crosshair !== null) parts.push(svg("path", { class: "grid", d: `M${x(at)} ${TOP}V${BOTTOM}` }));
    this.picture.replaceChildren(...parts);
  }
}

// A line with gaps where no value is known; of many points every n-th.
function path(points, x, y) {
  const stride = Math.ceil(points.length / MAX_POINTS);
  let before = -Infinity, text = "";
  for (let i = (points.length - 1) % stride; i < points.length; i += stride) {
    const [t, value] = points[i];
    if (value === null) before = -Infinity;
    else {
      text += `${t - before > MAX_GAP_S * stride ? "M" : "L"}${x(t)} ${y(value)}`;
      before = t;
    }
  }
  return text;
}
