// SPDX-License-Identifier: Apache-2.0
// The page: takes the stream of one topology, keeps its history, and draws the chosen port.

import { clock, count, plain, rate } from "./format.js";
import { Chart, repaintAll } from "./plot.js";
import { drawEvents, drawObjects, drawTiles, put } from "./tables.js";

const $ = (id) => document.getElementById(id);
const COLORS = ["#0072b2", "#d55e00", "#009e73", "#b8528f", "#e69f00", "#56b4e9", "#8a5a2b", "#7a6ff0", "#5f9e2f", "#c04040", "#3aa6a0", "#9a7fb0"];

const state = { topology: null, port: null, points: [], events: [], picture: null, problem: null, ended: false, historyS: 600, source: null, connected: false, lastS: 0 };
// What a viewer chose; a private window remembers nothing.
function chosen(key, choices, choose) {
  let value;
  try { if (choose) localStorage.setItem(key, choose); value = localStorage.getItem(key); } catch { value = choose; }
  return choices.includes(value) ? value : choices[0];
}
let paused = false, pausedAt = 0;

const bits = [rate, (v) => rate(v, "")], counts = [count, count], numbers = [plain, plain];
const charts = {
  queue: new Chart($("charts"), { form: counts, least: 5, whole: true }),
  goodput: new Chart($("charts"), { form: bits, least: 1000 }),
  control: new Chart($("charts"), { form: numbers, least: 4 }),
  drops: new Chart($("charts"), { form: [(v) => `${plain(v)} /s`, plain], least: 2 }),
};

// ---- colours: an object has its colour for as long as the page is open -----------------------------------------------

const given = new Map();
function colorOf(name) {
  if (!given.has(name)) given.set(name, COLORS[given.size % COLORS.length]);
  return given.get(name);
}

const THEMES = ["auto", "light", "dark"], darkness = matchMedia("(prefers-color-scheme: dark)");
let theme = null;
function setTheme(choose) {
  theme = chosen("fairlane-theme", THEMES, choose);
  document.documentElement.dataset.theme = theme === "auto" ? (darkness.matches ? "dark" : "light") : theme;
  put($("theme"), `Theme: ${theme}`);
  repaintAll();
}
$("theme").addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % 3]));
darkness.addEventListener("change", () => setTheme());
setTheme();

// ---- the stream ------------------------------------------------------------------------------------------------------

function connect(topology) {
  state.source?.close();
  Object.assign(state, { topology, points: [], events: [], picture: null, problem: null, ended: false, connected: false });
  draw();
  const source = new EventSource(`/api/stream?topology=${encodeURIComponent(topology)}`);
  state.source = source;
  source.addEventListener("hello", (event) => {
    const { history_s: historyS, ...first } = JSON.parse(event.data);
    Object.assign(state, { points: [], events: [], historyS, connected: true });
    take(first);
  });
  source.addEventListener("frame", (event) => take(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    state.connected = false;
    draw();
    if (source.readyState === EventSource.CLOSED) refreshIn(2000);
  });
}

function take({ points, events, picture, problem, ended }) {
  Object.assign(state, { picture, problem, ended, lastS: Date.now() / 1000 });
  state.points.push(...points);
  state.events.push(...events);
  const oldest = (state.points.at(-1)?.t ?? 0) - state.historyS;
  while (state.points.length && state.points[0].t < oldest) state.points.shift();
  state.events.splice(0, state.events.length - 620);
  draw();
}

let refreshing = null;
function refreshIn(ms) {  // one timer, whoever asks: they must not add up while there is nothing to see
  clearTimeout(refreshing);
  refreshing = setTimeout(refreshTopologies, ms);
}

async function refreshTopologies() {
  let names = [], titles = {};
  try {
    ({ topologies: names, titles } = await (await fetch("/api/topologies")).json());
  } catch { refreshIn(2000); return; }
  refreshIn(names.length ? 5000 : 2000);
  fill($("topology"), names, state.topology, (name) => (titles[name] ? `${titles[name]} (${name})` : name));
  if (!names.length) { state.topology = null; draw(); return; }
  const wanted = new URLSearchParams(location.search).get("topology");
  const name = names.includes(state.topology) ? state.topology : names.includes(wanted) ? wanted : names[0];
  if (name !== state.topology || state.source?.readyState === EventSource.CLOSED) { $("topology").value = name; connect(name); }
}

function fill(select, names, chosen, label = (name) => name) {
  if ([...select.options].map((o) => `${o.value} ${o.text}`).join("|") !== names.map((name) => `${name} ${label(name)}`).join("|")) {
    select.replaceChildren(...names.map((name) => new Option(label(name), name)));
  }
  if (names.includes(chosen)) select.value = chosen;
  select.disabled = names.length < 2;
}

// ---- drawing ---------------------------------------------------------------------------------------------------------

function draw() {
  drawState();
  const ports = state.picture?.ports ?? {}, names = [...new Set([...Object.keys(ports), ...Object.keys(state.points.at(-1)?.ports ?? {})])];
  if (!names.includes(state.port) && names.length) state.port = names[0];
  if (names.length) fill($("port"), names, state.port);
  if (paused) return;
  const port = ports[state.port] ?? Object.values(ports)[0];
  drawTiles($("tiles"), port?.tiles ?? (state.picture ? [["ports", "none managed", "run fairlane config init", false]] : []));
  drawCharts(port);
  drawObjects($("flows"), $("flows-title"), port?.objects, colorOf);
  drawEvents($("events"), state.events, $("filter").value, $("tuning").checked);
  put($("foot"), state.picture?.foot ?? "");
}

function drawState() {
  const problems = [...(state.picture?.problems ?? [])], bad = (text) => problems.push(["bad", text]);
  if (!state.topology) bad("No topology is running. Start one; this page finds it.");
  else if (!state.connected && state.lastS) bad(`The server of this page does not answer (since ${clock(state.lastS)}).`);
  if (state.ended) bad(`Topology ${state.topology} has ended.`);
  if (state.problem) bad(state.problem);
  const banner = $("banner"), trouble = problems.some(([kind]) => kind === "bad");
  banner.hidden = !problems.length;
  banner.classList.toggle("warn", !trouble);
  put(banner, problems.map(([, text]) => text).join("\n"));
  const [kind, words] = trouble ? ["bad", "trouble"] : state.picture?.loop ?? ["", "connecting"];
  $("state").className = `state ${kind}`;
  put($("state"), paused ? `paused at ${clock(pausedAt)}` : words);
}

function valuesOf(pick) { return state.points.map((p) => { const port = p.ports[state.port]; return [p.t, port ? pick(port) ?? null : null]; }); }

function drawCharts(about) {
  const to = state.points.at(-1)?.t ?? Date.now() / 1000, from = to - Number($("window").value);
  const seen = new Map(), reasons = new Set(), marks = new Set(), kinds = Object.entries(about?.kinds ?? {});
  for (const p of state.points) {
    const port = p.ports[state.port];
    if (!port || p.t < from) continue;
    for (const [kind, objects] of Object.entries(port.objects)) for (const key of Object.keys(objects)) seen.set(`${kind}|${key}`, p.t);
    for (const name of Object.keys(port.marks)) marks.add(name);
    for (const [name, value] of Object.entries(port.drops)) if (value > 0) reasons.add(name);
  }
  const css = getComputedStyle(document.documentElement);
  const ink = css.getPropertyValue("--muted").trim(), gold = css.getPropertyValue("--threshold").trim();
  const keys = [...seen.keys()].sort((a, b) => seen.get(b) - seen.get(a)).slice(0, 16).sort();
  // A line a shown object and column of a chart; of several columns the first ones are dashed.
  const lines = (plot) => kinds.flatMap(([name, kind]) => {
    const columns = kind.columns.filter((c) => c.plot === plot), several = columns.length > 1 && !kind.brief;
    const mine = keys.filter((k) => k.startsWith(`${name}|`)).map((k) => k.slice(name.length + 1));
    return columns.flatMap((column, i) => mine.map((key) => ({
      name: `${kind.label}${key}${several ? ` ${column.title}` : ""}`, color: kind.brief ? gold : colorOf(key),
      step: plot === "control" && column.unit === "packets", wide: kind.brief, dashed: kind.brief || (several && i < columns.length - 1),
      points: valuesOf((p) => p.objects[name]?.[key]?.[kind.columns.indexOf(column)]) })));
  });
  const controls = kinds.flatMap(([, kind]) => kind.columns).filter((c) => c.plot === "control"), unit = controls[0]?.unit;
  const bounds = [...marks].map((name) => ({ name, color: gold, dashed: true, points: valuesOf((p) => p.marks[name]) }));
  const all = (name, pick) => ({ name, color: ink, points: valuesOf(pick), fill: true, wide: true });
  charts.queue.draw(`Queue, ${about?.unit ?? "packets"}`, [all("all", (p) => p.waiting), ...lines("queue"), ...bounds], from, to);
  charts.goodput.draw("Goodput", [all("sent", (p) => p.tx), { name: "line", color: ink, dashed: true, points: valuesOf((p) => p.rate ?? p.bw) }, ...lines("goodput")], from, to);
  Object.assign(charts.control, { form: unit === "bit/s" ? bits : numbers, whole: ["packets", "cells", "bytes"].includes(unit) });
  charts.control.draw(`${[...new Set(controls.map((c) => c.title))].join(" and ") || "Control"}${unit ? `, ${unit}` : ""}`, lines("control"), from, to);
  charts.drops.draw("Drops by reason, packets/s", [...reasons].sort().map((name) => ({ name: name.replaceAll("_", " "), color: colorOf(`drop ${name}`), step: true, fill: true, points: valuesOf((p) => p.drops[name] ?? (Object.keys(p.drops).length || p.waiting != null ? 0 : null)) })), from, to);
}

// ---- controls --------------------------------------------------------------------------------------------------------

$("topology").addEventListener("change", () => { state.port = null; connect($("topology").value); });
const redraw = () => { const was = paused; paused = false; draw(); paused = was; };
$("port").addEventListener("change", () => { state.port = $("port").value; redraw(); });
const WINDOWS = ["120", "60", "300", "600"];
$("window").value = chosen("fairlane-window", WINDOWS);
$("window").addEventListener("change", () => { chosen("fairlane-window", WINDOWS, $("window").value); redraw(); });
for (const [id, kind] of [["filter", "input"], ["tuning", "change"]]) $(id).addEventListener(kind, () => drawEvents($("events"), state.events, $("filter").value, $("tuning").checked));
$("pause").addEventListener("click", () => {
  paused = !paused;
  pausedAt = Date.now() / 1000;
  $("pause").textContent = paused ? "Go on" : "Pause";
  $("pause").setAttribute("aria-pressed", String(paused));
  draw();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "p" && !["INPUT", "SELECT"].includes(document.activeElement?.tagName)) $("pause").click();
});
refreshTopologies();
