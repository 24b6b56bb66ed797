// SPDX-License-Identifier: Apache-2.0
// The page: takes the stream of one topology, keeps its history, and draws the chosen port.

import { clock, count, perSecond, plain, rate } from "./format.js";
import { Chart, repaintAll } from "./plot.js";
import { drawEvents, drawObjects, drawTiles, named, programOf } from "./tables.js";

const $ = (id) => document.getElementById(id);
const COLORS = ["#0072b2", "#d55e00", "#009e73", "#b8528f", "#e69f00", "#56b4e9", "#8a5a2b", "#7a6ff0", "#5f9e2f", "#c04040", "#3aa6a0", "#9a7fb0"];

const state = { topology: null, port: null, points: [], events: [], picture: null, problem: null, ended: false, historyS: 600, source: null, connected: false, lastS: 0 };
const saved = (key, fallback) => { try { return localStorage.getItem(key) ?? fallback; } catch { return fallback; } };
const save = (key, value) => { try { localStorage.setItem(key, value); } catch { /* private window */ } };
const CHARTS = ["queue", "goodput", "control", "drops"];
let paused = false, pausedAt = 0;

const charts = {
  queue: new Chart($("charts"), { title: "Queue", unit: count, axis: count, least: 5, whole: true }),
  goodput: new Chart($("charts"), { title: "Goodput", unit: rate, axis: (v) => rate(v).replace("bit/s", ""), least: 1000 }),
  control: new Chart($("charts"), { title: "Control", unit: plain, axis: plain, least: 4 }),
  drops: new Chart($("charts"), { title: "Drops", unit: (v) => `${perSecond(v)} /s`, axis: plain, least: 2 }),
};

// ---- colours: a flow keeps its colour for as long as the page is open -----------------------------------------------

const given = new Map();
function colorOf(name) {
  if (!given.has(name)) given.set(name, COLORS[given.size % COLORS.length]);
  return given.get(name);
}

function setTheme(theme) {
  const dark = theme === "dark" || (theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  $("theme").textContent = { auto: "Theme: auto", dark: "Theme: dark", light: "Theme: light" }[theme];
  $("theme").dataset.theme = theme;
  repaintAll();
}
$("theme").addEventListener("click", () => {
  const next = { auto: "light", light: "dark", dark: "auto" }[$("theme").dataset.theme];
  save("fairlane-theme", next);
  setTheme(next);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme($("theme").dataset.theme));
setTheme(["auto", "light", "dark"].includes(saved("fairlane-theme", "auto")) ? saved("fairlane-theme", "auto") : "auto");

// ---- the stream ------------------------------------------------------------------------------------------------------

function connect(topology) {
  state.source?.close();
  Object.assign(state, { topology, points: [], events: [], picture: null, problem: null, ended: false, connected: false });
  draw();
  const source = new EventSource(`/api/stream?topology=${encodeURIComponent(topology)}`);
  state.source = source;
  source.addEventListener("hello", (event) => {
    const said = JSON.parse(event.data);
    Object.assign(state, { points: said.points, events: said.events, historyS: said.history_s, connected: true });
    take(said);
  });
  source.addEventListener("frame", (event) => {
    const said = JSON.parse(event.data);
    state.points.push(...said.points);
    state.events.push(...said.events);
    const oldest = (state.points.at(-1)?.t ?? 0) - state.historyS;
    while (state.points.length && state.points[0].t < oldest) state.points.shift();
    if (state.events.length > 500) state.events.splice(0, state.events.length - 500);
    take(said);
  });
  source.addEventListener("error", () => {
    state.connected = false;
    draw();
    if (source.readyState === EventSource.CLOSED) refreshIn(2000);
  });
}

function take(said) {
  state.picture = said.picture; state.problem = said.problem; state.ended = said.ended; state.lastS = Date.now() / 1000;
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
  if (!names.length) {
    state.topology = null;
    draw();
    return;
  }
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

function portRow() {
  const managed = (state.picture?.ports ?? []).filter((p) => p.managed);
  return managed.find((p) => `${p.switch}:${p.port}` === state.port) ?? managed[0] ?? null;
}

function draw() {
  drawState();
  const managed = (state.picture?.ports ?? []).filter((p) => p.managed).map((p) => `${p.switch}:${p.port}`);
  const known = [...new Set([...managed, ...(state.points.at(-1) ? Object.keys(state.points.at(-1).ports) : [])])];
  if (!known.includes(state.port) && known.length) state.port = known[0];
  if (known.length) fill($("port"), known, state.port);
  if (paused) return;
  const row = portRow();
  drawTiles($("tiles"), row, state.picture);
  drawCharts(row);
  drawObjects($("flows"), $("flows-title"), row, state.picture, colorOf);
  drawEvents($("events"), state.events, $("filter").value, $("tuning").checked);
  const switches = state.picture?.switches ?? [];
  $("foot").textContent = switches.map((s) => `${s.switch} ${s.grpc} ${s.program ?? "no program"}${s.read_ms == null ? "" : `, read in ${s.read_ms.toFixed(1)} ms`}`).join(" · ");
}

function drawState() {
  const bad = [], warn = [];
  const gone = (state.picture?.switches ?? []).filter((s) => !s.reachable);
  if (!state.topology) bad.push("No topology is running. Start one; this page finds it.");
  else if (!state.connected && state.lastS) bad.push(`The server of this page does not answer (since ${clock(state.lastS)}).`);
  if (state.ended) bad.push(`Topology ${state.topology} has ended.`);
  if (state.problem) bad.push(state.problem);
  for (const d of state.picture?.dead ?? []) bad.push(d.message);
  for (const s of gone) bad.push(`${s.switch} is gone: ${s.error?.message ?? "it does not answer"}`);
  for (const s of state.picture?.switches ?? []) {
    if (s.reachable && s.program == null) warn.push(`${s.switch} has no program yet: run fairlane config init`);
    else if (s.reachable && s.error) warn.push(s.error.message);
  }
  if (state.picture?.loop_error) warn.push(state.picture.loop_error.message);
  const banner = $("banner");
  banner.hidden = !bad.length && !warn.length;
  banner.classList.toggle("warn", !bad.length);
  const text = [...bad, ...warn].join("\n");
  if (banner.textContent !== text) banner.textContent = text;
  const loop = state.picture?.loop;
  const status = $("state");
  const waits = (loop ?? []).filter((l) => !l.connected).map((l) => l.switch);
  const [kind, words] = bad.length ? ["bad", "trouble"] : !state.picture ? ["", "connecting"]
    : !loop ? ["warn", "no control loop"] : waits.length ? ["warn", `loop waits for ${waits.join(", ")}`]
    : loop.some((l) => l.dry_run) ? ["warn", "loop in dry run"] : ["good", "loop runs"];
  status.className = `state ${kind}`;
  status.textContent = paused ? `paused at ${clock(pausedAt)}` : words;
}

function valuesOf(pick) { return state.points.map((p) => { const port = p.ports[state.port]; return [p.t, port ? pick(port) ?? null : null]; }); }

function drawCharts(row) {
  const to = state.points.at(-1)?.t ?? Date.now() / 1000, from = to - Number($("window").value);
  const seen = new Map(), reasons = new Set(), marks = new Set();
  for (const p of state.points) {
    const port = p.ports[state.port];
    if (!port || p.t < from) continue;
    for (const [kind, objects] of Object.entries(port.objects)) for (const key of Object.keys(objects)) seen.set(`${kind}|${key}`, p.t);
    for (const name of Object.keys(port.marks)) marks.add(name);
    for (const [name, value] of Object.entries(port.drops)) if (value > 0) reasons.add(name);
  }
  const program = programOf(state.picture, row);
  const css = getComputedStyle(document.documentElement);
  const ink = css.getPropertyValue("--muted").trim(), gold = css.getPropertyValue("--threshold").trim();
  const keys = [...seen.keys()].sort((a, b) => seen.get(b) - seen.get(a)).slice(0, 16).sort();
  // A line a shown object and column of a chart; of several columns the first ones are dashed.
  const lines = (plot) => program.kinds.flatMap((kind) => {
    const drawn = kind.columns.filter((c) => CHARTS.includes(c.plot)), columns = drawn.filter((c) => c.plot === plot);
    const mine = keys.filter((k) => k.startsWith(`${kind.name}|`)).map((k) => k.slice(kind.name.length + 1));
    return columns.flatMap((column, i) => mine.map((key) => ({
      name: kind.brief ? `${kind.label} ${key}` : columns.length > 1 ? `${named(state.picture, key)} ${column.title}` : named(state.picture, key), color: kind.brief ? gold : colorOf(key),
      step: plot === "control" && column.unit === "packets", wide: kind.brief, dashed: kind.brief || (columns.length > 1 && i < columns.length - 1),
      points: valuesOf((p) => p.objects[kind.name]?.[key]?.[drawn.indexOf(column)]) })));
  });
  const controls = program.kinds.flatMap((k) => k.columns).filter((c) => c.plot === "control");
  const unit = program.columns.find((c) => c.plot === "queue")?.unit ?? "packets", rates = controls[0]?.unit === "bit/s";
  const bounds = [...marks].map((name) => ({ name, color: gold, dashed: true, points: valuesOf((p) => p.marks[name]) }));
  charts.queue.draw(`Queue, ${unit}`, [{ name: "all", color: ink, points: valuesOf((p) => p.waiting), fill: true, wide: true }, ...lines("queue"), ...bounds], from, to);
  charts.goodput.draw("Goodput", [{ name: "sent", color: ink, points: valuesOf((p) => p.tx), fill: true, wide: true }, { name: "line", color: ink, dashed: true, points: valuesOf((p) => p.rate ?? p.bw) }, ...lines("goodput")], from, to);
  charts.control.unit = rates ? rate : plain;
  charts.control.whole = ["packets", "cells", "bytes"].includes(controls[0]?.unit);
  charts.control.axis = rates ? (v) => rate(v).replace("bit/s", "") : plain;
  charts.control.draw(`${[...new Set(controls.map((c) => c.title))].join(" and ") || "Control"}${controls[0]?.unit ? `, ${controls[0].unit}` : ""}`, lines("control"), from, to);
  charts.drops.draw("Drops by reason, packets/s", [...reasons].sort().map((name) => ({ name: name.replaceAll("_", " "), color: colorOf(`drop ${name}`), step: true, fill: true, points: valuesOf((p) => p.drops[name] ?? (Object.keys(p.drops).length || p.waiting != null ? 0 : null)) })), from, to);
}

// ---- controls --------------------------------------------------------------------------------------------------------

$("topology").addEventListener("change", () => { state.port = null; connect($("topology").value); });
$("port").addEventListener("change", () => { state.port = $("port").value; const was = paused; paused = false; draw(); paused = was; });
$("window").value = ["60", "120", "300", "600"].includes(saved("fairlane-window", "120")) ? saved("fairlane-window", "120") : "120";
$("window").addEventListener("change", () => { save("fairlane-window", $("window").value); const was = paused; paused = false; draw(); paused = was; });
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
