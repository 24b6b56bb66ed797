// SPDX-License-Identifier: Apache-2.0
// The parts of the page that are text: tiles of the port, its flows or VCs, and the event log. Data only ever becomes text, never markup.

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

const bytes = (n) => (n == null ? DASH : `${plain(n)} B`);

export function drawTiles(parent, row, picture) {
  const tiles = [];
  if (row) {
    const measured = row.measured ?? {};
    const about = (key) => measured[key] ?? null;
    const cells = row.scheme != null;
    const share = row.utilisation == null ? "" : `${percent(Math.min(1, row.utilisation))} of ${rate(row.rate_bps ?? about("bw_bps")?.value)}`;
    tiles.push(["sent", rate(row.tx_bps), share]);
    tiles.push(["waiting", cells ? `${count(row.waiting_cells)} cells` : `${count(row.waiting_packets)} packets`, `of ${count(cells ? row.capacity_cells : row.capacity_packets)}`]);
    if (cells) tiles.push(["scheme", row.scheme, row.active_vcs == null ? "" : `N ${row.active_vcs}`]);
    for (const policy of row.policies.slice(0, 4)) {
      const name = row.policies.length > 1 || policy.traffic_class ? `Qthresh, class ${policy.traffic_class}` : "Qthresh";
      tiles.push([name, policy.scheme === "qthresh" ? `${policy.qthresh_packets} packets` : policy.scheme, policy.mode ? `${policy.mode}${policy.mode === "auto" && policy.k ? `, k ${plain(policy.k)}` : ""}` : ""]);
    }
    tiles.push(["drops", `${perSecond(row.drops_per_s)} /s`, `${count(row.dropped_packets)} in all`]);
    for (const [key, name, form] of [["bw_bps", "BW", rate], ["t_res_s", "T_res", seconds], ["tau_s", "τ", seconds], ["t_ack_s", "T_ACK", seconds], ["n_c", "N_C", plain], ["l_d_bytes", "L_D", bytes]]) {
      const got = about(key);
      if (got?.value == null) { if (["bw_bps", "t_res_s", "n_c"].includes(key) && row.measured) tiles.push([name, DASH, "not measured"]); continue; }
      tiles.push([name, form(got.value), got.age_s == null ? "" : `${got.age_s < 10 ? got.age_s.toFixed(1) : Math.round(got.age_s)} s ago`, got.age_s > STALE_S]);
    }
  } else if (picture) {
    tiles.push(["ports", "none managed", "run fairlane init"]);
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

export function drawFlows(table, title, row, picture, colorOf) {
  const here = (item) => row && item.switch === row.switch && item.port === row.port;
  const vcs = (picture?.vcs ?? []).filter(here), flows = (picture?.flows ?? []).filter(here);
  const total = flows.reduce((sum, flow) => sum + (flow.goodput_bps ?? 0), 0);
  if (vcs.length) {
    put(title, `VCs (${vcs.length})`);
    head(table, [["VC"], ["queue"], ["cells", 1], ["MCR", 1], ["w", 1], ["r", 1], ["goodput", 1], ["drops/s", 1]]);
    const full = 1.15 * Math.max(10, ...vcs.map((vc) => vc.waiting_cells ?? 0));
    rows(table.tBodies[0], vcs.slice(0, 200), () => line(8, 1), (tr, vc) => {
      texts(tr, [`${vc.active === false ? "○" : "●"} ${vc.vc}`, null, count(vc.waiting_cells), rate(vc.mcr_bps), rate(vc.w_bps), rate(vc.rate_bps), rate(vc.goodput_bps), perSecond(vc.drops_per_s)]);
      queueCell(tr.children[1], vc.waiting_cells, full, null, colorOf(vc.vc));
      tr.children[7].classList.toggle("bad", vc.drops_per_s > 0);
    });
    return;
  }
  const more = (picture?.flows_in_all ?? 0) > (picture?.flows?.length ?? 0) ? ", those that send most" : "";
  put(title, flows.length ? `Flows (${flows.length}${more})` : "Flows: none has an entry here");
  head(table, [["flow"], ["queue, and its threshold"], ["packets", 1], ["threshold", 1], ["goodput", 1], ["share", 1], ["drops/s", 1]]);
  const full = 1.25 * Math.max(4, ...flows.map((flow) => Math.max(flow.waiting_packets ?? 0, flow.qthresh_packets ?? 0)));
  rows(table.tBodies[0], flows, () => line(7, 1), (tr, flow) => {
    texts(tr, [flow.flow, null, count(flow.waiting_packets), count(flow.qthresh_packets), rate(flow.goodput_bps), flow.goodput_bps == null || !total ? DASH : percent(flow.goodput_bps / total), perSecond(flow.drops_per_s)]);
    queueCell(tr.children[1], flow.waiting_packets, full, flow.qthresh_packets, colorOf(flow.flow));
    tr.children[6].classList.toggle("bad", flow.drops_per_s > 0);
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
