// SPDX-License-Identifier: Apache-2.0
// The live page: takes the stream of one topology and draws the chosen port. Data becomes text only, never markup.

import { Chart, clock, make } from "./plot.js";

const $ = (id) => document.getElementById(id);
const MAX_LINES = 16, MAX_EVENTS = 500;
const charts = ["queue", "goodput", "control", "drops"].map((name) => [name, new Chart($("charts"))]);
let source = null, connected = false;
let points = [], events = [], news = {};

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function replace(parent, ...children) {  // what is the same stays, so that a selection of text stays too
  const same = parent.children.length === children.length && children.every((one, i) => one.isEqualNode(parent.children[i]));
  if (!same) parent.replaceChildren(...children);
}

// ---- the stream ------------------------------------------------------------------------------------------------------

function connect() {
  source = new EventSource("/api/stream");
  source.onopen = () => { connected = true; points = []; events = []; };
  source.onerror = () => {
    connected = false;
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
    draw();
  };
  source.onmessage = (event) => {
    news = JSON.parse(event.data);
    points.push(...news.points);
    events = [...events, ...news.events].slice(-MAX_EVENTS);
    const oldest = (points.at(-1)?.t ?? 0) - news.history_s;
    points = points.filter((point) => point.t >= oldest);
    draw();
  };
}

function fill(select, names) {
  const chosen = select.value;
  replace(select, ...names.map((name) => new Option(name)));
  if (names.includes(chosen)) select.value = chosen;
  select.disabled = names.length < 2;
}

// ---- drawing ---------------------------------------------------------------------------------------------------------

function draw() {
  drawState();
  put($("topology"), news.topology ?? "");
  const ports = news.picture?.ports ?? {};
  if (Object.keys(ports).length) fill($("port"), Object.keys(ports));
  const port = ports[$("port").value];
  const none = news.picture ? [["ports", "none managed", "run fairlane config init", false]] : [];
  replace($("tiles"), ...(port?.tiles ?? none).map(([name, value, note, old]) => make(
    "div", old ? "tile stale" : "tile", make("div", "name", name), make("div", "value", value), make("div", "note", note),
  )));
  redrawCharts();
  drawEvents();
}

function drawState() {
  const problems = [...(news.picture?.problems ?? [])];
  if (!connected) problems.push(["bad", "The server of this page does not answer."]);
  if (news.problem) problems.push(["bad", news.problem]);
  const bad = problems.some(([kind]) => kind === "bad"), [kind, words] = news.picture?.loop ?? ["", "connecting"];
  $("banner").hidden = !problems.length;
  $("banner").className = bad ? "banner" : "banner warn";
  put($("banner"), problems.map(([, text]) => text).join("\n"));
  $("state").className = `state ${bad ? "bad" : kind}`;
  put($("state"), bad ? "trouble" : words);
}

function redrawCharts() {
  const name = $("port").value, port = news.picture?.ports[name], to = points.at(-1)?.t ?? 0;
  for (const [plot, chart] of charts) {
    const lastSeen = new Map();
    for (const point of points) for (const line of Object.keys(point.ports[name]?.[plot] ?? {})) lastSeen.set(line, point.t);
    const lines = [...lastSeen.keys()].sort((a, b) => lastSeen.get(b) - lastSeen.get(a)).slice(0, MAX_LINES);
    const absent = plot === "drops" ? 0 : null;
    const [title, unit] = port?.charts[plot] ?? ["", ""];
    chart.draw(title, unit, lines.map((line) => ({
      name: line,
      dashed: port?.references.includes(line),
      points: points.map((point) => [point.t, point.ports[name] ? point.ports[name][plot][line] ?? absent : null]),
    })), to - news.history_s, to);
  }
}

function drawEvents() {
  replace($("events").tBodies[0], ...events.slice(-100).reverse().map((one) => make(
    "tr", "", make("td", "time", clock(Date.parse(one.time) / 1000)), make("td", "place", one.place),
    make("td", `what ${one.event}`, one.event + (one.dry_run ? " (dry run)" : "")), make("td", "why", one.why),
  )));
}

// ---- controls --------------------------------------------------------------------------------------------------------

$("port").onchange = draw;
connect();
