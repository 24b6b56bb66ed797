// SPDX-License-Identifier: Apache-2.0
// The parts of the page that are text: tiles of the port, its objects (flows, VCs), and the event log. Data only ever becomes text, never markup.

import { count, DASH, percent, perSecond, plain, rate, seconds } from "./format.js";

const STALE_S = 3;

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text != null) element.textContent = text;
  return element;
}

// Elements are kept and changed where the number of them is the same: nothing flickers, and what is selected stays selected.
function rows(parent, wanted, create, update) {
  while (parent.children.length > wanted.length) parent.lastElementChild.remove();
  while (parent.children.length < wanted.length) parent.append(create());
  wanted.forEach((item, i) => update(parent.children[i], item));
}

function put(element, text) { if (element.textContent !== text) element.textContent = text; }

// A value of a program's column, by its unit.
export function valueText(column, value) {
  if (value == null) return DASH;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "object") return JSON.stringify(value);
  if (typeof value !== "number") return String(value);
  const form = { "bit/s": rate, s: seconds, "/s": perSecond, packets: count, cells: count, bytes: (n) => `${count(n)} B` }[column.unit] ?? plain;
  return form(value);
}

// The name of an object with hosts' names for their addresses: `tcp h1:40000 → h3:5001`.
export function named(picture, text) {
  const found = text.replace(/\d+(?:\.\d+){3}/g, (address) => picture?.hosts?.[address] ?? address);
  return found === text ? text : found.replace(" > ", " → ");
}

export function programOf(picture, row) {
  const name = picture?.switches.find((s) => s.switch === row?.switch)?.program;
  return picture?.programs[name] ?? { columns: [], measured: [], kinds: [] };
}

export function objectsOf(picture, row, kind) {
  return (picture?.[kind.plural] ?? []).filter((one) => row && one.switch === row.switch && one.port === row.port);
}

const withUnit = (column, value) => `${valueText(column, value)}${["packets", "cells"].includes(column.unit) && value != null ? ` ${column.unit}` : ""}`;

export function drawTiles(parent, row, picture) {
  const tiles = [];
  if (row) {
    const measured = row.measured ?? {};
    const about = (key) => measured[key] ?? null;
    const program = programOf(picture, row);
    const plotted = (plot) => program.columns.find((c) => c.plot === plot && row[c.name] != null);
    const share = row.utilisation == null ? "" : `${percent(Math.min(1, row.utilisation))} of ${rate(row.rate_bps ?? about("bw_bps")?.value)}`;
    tiles.push(["sent", rate(row.tx_bps), share]);
    const queue = plotted("queue") ?? { name: "waiting_packets", unit: "packets" }, limit = plotted("capacity") ?? { name: "capacity_packets" };
    tiles.push(["waiting", withUnit(queue, row[queue.name]), `of ${count(row[limit.name])}`]);
    const brief = program.kinds.filter((k) => k.brief).flatMap((k) => objectsOf(picture, row, k).slice(0, 4).map((one) => [k, one]));
    for (const [kind, one] of brief) {
      const shown = kind.columns.filter((c) => !c.wide && one[c.name] != null);
      const main = shown.find((c) => c.plot === "control") ?? shown[0];
      if (main) tiles.push([brief.length > 1 ? `${main.title}, ${kind.label} ${one[kind.name]}` : main.title, withUnit(main, one[main.name]), shown.filter((c) => c !== main).map((c) => `${c.title} ${valueText(c, one[c.name])}`).join(", ")]);
    }
    if (!brief.length) for (const column of program.columns.filter((c) => !c.wide && !["queue", "capacity"].includes(c.plot))) tiles.push([column.title, withUnit(column, row[column.name]), ""]);
    tiles.push(["drops", `${perSecond(row.drops_per_s)} /s`, `${count(row.dropped_packets)} in all`]);
    for (const column of program.measured) {
      const got = about(column.name), known = got?.value != null;
      if (!known && !column.wide && column.name in measured) tiles.push([column.title, DASH, "not measured"]);
      if (known) tiles.push([column.title, valueText(column, got.value), got.age_s == null ? "" : `${got.age_s < 10 ? got.age_s.toFixed(1) : Math.round(got.age_s)} s ago`, got.age_s > STALE_S]);
    }
  } else if (picture) {
    tiles.push(["ports", "none managed", "run fairlane config init"]);
  }
  rows(parent, tiles, () => {
    const tile = make("div", "tile");
    tile.append(make("div", "name"), make("div", "value"), make("div", "note"));
    return tile;
  }, (tile, [name, value, note, stale]) => {
    [name, value, note].forEach((text, i) => put(tile.children[i], text));
    tile.classList.toggle("stale", Boolean(stale));
  });
}

function queueCell(cell, waiting, full, threshold, color) {
  if (!cell.firstElementChild) {
    const bar = make("div", "bar");
    bar.append(make("i"), make("b"));
    cell.append(bar);
  }
  const [fill, mark] = cell.firstElementChild.children;
  fill.style.width = `${waiting == null ? 0 : Math.min(100, (100 * waiting) / full)}%`;
  fill.style.background = color;
  mark.hidden = threshold == null;
  if (threshold != null) mark.style.left = `calc(${Math.min(99, (100 * threshold) / full)}% - 1px)`;
}

function head(table, columns) {
  const key = columns.join("|");
  if (table.dataset.head === key) return;
  table.dataset.head = key;
  const line = make("tr");
  line.append(...columns.map(([name, numeric]) => make("th", numeric ? "num" : "", name)));
  table.tHead.replaceChildren(line);
  table.tBodies[0].replaceChildren();
}

export function drawObjects(table, title, row, picture, colorOf) {
  const kinds = programOf(picture, row).kinds.filter((k) => !k.brief);
  const kind = kinds.find((k) => objectsOf(picture, row, k).length) ?? kinds[0];
  table.hidden = !kind;
  if (!kind) { put(title, "This program shows ports only"); return; }
  const found = objectsOf(picture, row, kind);
  const more = (picture?.in_all[kind.name] ?? 0) > (picture?.[kind.plural]?.length ?? 0) ? ", those that send most" : "";
  put(title, found.length ? `${kind.plural} (${found.length}${more})` : `${kind.plural}: none has an entry here`);
  const columns = kind.columns.filter((c) => !c.wide), queue = columns.find((c) => c.plot === "queue");
  const mark = columns.find((c) => c.plot === "control" && c.unit === queue?.unit);
  const goodput = columns.find((c) => c.plot === "goodput"), drops = columns.findIndex((c) => c.plot === "drops");
  const total = found.reduce((sum, one) => sum + (one[goodput?.name] ?? 0), 0);
  const first = queue ? 2 : 1, share = goodput ? [["share", 1]] : [];
  head(table, [[kind.name], ...(queue ? [[mark ? `queue, and its ${mark.title}` : "queue"]] : []), ...columns.map((c) => [c.title, 1]), ...share]);
  const full = 1.25 * Math.max(4, ...found.map((one) => Math.max(one[queue?.name] ?? 0, one[mark?.name] ?? 0)));
  rows(table.tBodies[0], found, () => line(first + columns.length + share.length, first - 1), (tr, one) => {
    texts(tr, [named(picture, one[kind.name]), ...(queue ? [null] : []), ...columns.map((c) => valueText(c, one[c.name])), ...(goodput ? [total ? percent((one[goodput.name] ?? 0) / total) : DASH] : [])]);
    if (queue) queueCell(tr.children[1], one[queue.name], full, mark ? one[mark.name] : null, colorOf(one[kind.name]));
    tr.classList.toggle("idle", one.active === false);
    if (drops >= 0) tr.children[first + drops].classList.toggle("bad", one[columns[drops].name] > 0);
  });
}

function line(cells, queue) {
  const tr = make("tr");
  for (let i = 0; i < cells; i += 1) tr.append(make("td", i === queue ? "queue" : i > queue ? "num" : ""));
  return tr;
}

function texts(tr, values) { values.forEach((value, i) => { if (value != null) put(tr.children[i], value); }); }

export function drawEvents(table, events, filter, withTuning) {
  const needle = filter.trim().toLowerCase();
  const shown = events.filter((e) => (withTuning || e.event !== "tuned") && (!needle || `${e.event} ${e.place} ${e.why}`.toLowerCase().includes(needle))).slice(-100).reverse();
  const key = `${shown.length} ${shown[0]?.time} ${shown[0]?.event} ${needle} ${withTuning}`;
  if (table.dataset.key === key) return;
  table.dataset.key = key;
  rows(table.tBodies[0], shown, () => {
    const tr = make("tr");
    tr.append(make("td", "time"), make("td", "place"), make("td", "what"), make("td", "why"));
    return tr;
  }, (tr, event) => {
    const moment = new Date(event.time);
    const name = `${event.event}${event.dry_run ? " (dry run)" : ""}`;
    texts(tr, [Number.isNaN(moment.getTime()) ? String(event.time) : moment.toLocaleTimeString("en-GB"), event.place, name, event.why]);
    tr.children[2].className = `what ${["error", "disconnected", "flow_refused"].includes(event.event) ? "error" : event.event === "threshold" ? "threshold" : ""}`;
  });
}
