// SPDX-License-Identifier: Apache-2.0
// The live page: takes the stream of one topology and draws the chosen port. Data becomes text only, never markup.

import { Chart, clock, make } from "./plot.js";

const $ = (id) => document.getElementById(id);
const MAX_LINES = 16, MAX_EVENTS = 500;
const charts = ["queue", "goodput", "control", "drops"].map((name) => [name, new Chart($("charts"), redrawCharts)]);
let source = null, connected = false, paused = false;
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
  if (paused) return;
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
  drawObjects(port?.objects);
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
  const shown = points.filter((point) => point.t >= to - Number($("window").value));
  for (const [plot, chart] of charts) {
    const lastSeen = new Map();
    for (const point of shown) for (const line of Object.keys(point.ports[name]?.[plot] ?? {})) lastSeen.set(line, point.t);
    const lines = [...lastSeen.keys()].sort((a, b) => lastSeen.get(b) - lastSeen.get(a)).slice(0, MAX_LINES);
    const absent = plot === "drops" ? 0 : null;
    const [title, unit] = port?.charts[plot] ?? ["", ""];
    chart.draw(title, unit, lines.map((line) => ({
      name: line,
      dashed: port?.references.includes(line),
      points: shown.map((point) => [point.t, point.ports[name] ? point.ports[name][plot][line] ?? absent : null]),
    })), to - Number($("window").value), to);
  }
}

function drawObjects(objects) {
  put($("flows-title"), objects?.title ?? "This program shows ports only");
  $("flows").hidden = !objects;
  if (!objects) return;
  const line = (tag, name, cells, bad) => make("tr", "", make(tag, "", name), ...cells.map((text, i) => make(tag, bad.includes(i) ? "num bad" : "num", text)));
  const [name, ...headings] = objects.head;
  replace($("flows").tHead, line("th", name, headings, []));
  replace($("flows").tBodies[0], ...objects.rows.map((row) => line("td", row.name, row.cells, row.bad)));
}

function drawEvents() {
  const words = $("filter").value.trim().toLowerCase();
  const shown = events.filter((one) => `${one.event} ${one.place} ${one.why}`.toLowerCase().includes(words));
  replace($("events").tBodies[0], ...shown.slice(-100).reverse().map((one) => make(
    "tr", "", make("td", "time", clock(Date.parse(one.time) / 1000)), make("td", "place", one.place),
    make("td", `what ${one.event}`, one.event + (one.dry_run ? " (dry run)" : "")), make("td", "why", one.why),
  )));
}

// ---- controls --------------------------------------------------------------------------------------------------------

$("port").onchange = $("window").onchange = $("filter").oninput = draw;
$("pause").onclick = () => {
  paused = !paused;
  put($("pause"), paused ? "Go on" : "Pause");
  $("pause").setAttribute("aria-pressed", String(paused));
  if (paused) source.close();
  else connect();  // the server has what was missed
};
connect();
