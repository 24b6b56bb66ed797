// SPDX-License-Identifier: Apache-2.0
// The parts of the page that are text: tiles of the port, its objects, and the event log. Data only ever becomes text, never markup.

export function make(tag, className, ...content) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...content);
  return element;
}

// Elements are kept and changed where the number of them is the same: nothing flickers, and what is selected stays selected.
function rows(parent, wanted, create, update) {
  while (parent.children.length > wanted.length) parent.lastElementChild.remove();
  while (parent.children.length < wanted.length) parent.append(create());
  wanted.forEach((item, i) => update(parent.children[i], item));
}

export function put(element, text) { if (element.textContent !== text) element.textContent = text; }

function texts(parent, values) { values.forEach((value, i) => put(parent.children[i], value)); }

export function drawTiles(parent, tiles) {
  rows(parent, tiles, () => make("div", "tile", make("div", "name"), make("div", "value"), make("div", "note")), (tile, [name, value, note, stale]) => {
    texts(tile, [name, value, note]);
    tile.classList.toggle("stale", stale);
  });
}

export function drawObjects(table, title, objects, colorOf) {
  table.hidden = !objects;
  put(title, objects?.title ?? "This program shows ports only");
  if (!objects) return;
  const first = objects.bar ? 2 : 1, name = (i) => (i >= first ? "num" : i ? "queue" : ""), key = objects.head.join("|");
  if (table.dataset.head !== key) {
    table.dataset.head = key;
    table.tHead.replaceChildren(make("tr", "", ...objects.head.map((text, i) => make("th", i >= first ? "num" : "", text))));
    table.tBodies[0].replaceChildren();
  }
  const create = () => make("tr", "", ...objects.head.map((_, i) => make("td", name(i), ...(name(i) === "queue" ? [make("div", "bar", make("i"), make("b"))] : []))));
  rows(table.tBodies[0], objects.rows, create, (tr, one) => {
    put(tr.children[0], one.name);
    one.cells.forEach((text, i) => {
      put(tr.children[first + i], text);
      tr.children[first + i].classList.toggle("bad", one.bad.includes(i));
    });
    tr.classList.toggle("idle", one.is_active === false);
    if (!objects.bar) return;
    const [fill, mark] = tr.children[1].firstElementChild.children, limit = one.marks[0] / objects.full;
    fill.style.width = `${Math.min(100, (100 * (one.queue ?? 0)) / objects.full)}%`;
    fill.style.background = colorOf(one.name);
    mark.hidden = !one.marks.length;
    mark.style.left = `calc(${Math.min(99, 100 * limit)}% - 1px)`;
  });
}

export function drawEvents(table, events, filter, withTuning) {
  const needle = filter.trim().toLowerCase();
  const shown = events.filter((e) => (withTuning || e.event !== "tuned") && (!needle || `${e.event} ${e.place} ${e.why}`.toLowerCase().includes(needle))).slice(-100).reverse();
  const key = `${shown.length} ${shown[0]?.time} ${shown[0]?.event} ${needle} ${withTuning}`;
  if (table.dataset.key === key) return;
  table.dataset.key = key;
  rows(table.tBodies[0], shown, () => make("tr", "", ...["time", "place", "what", "why"].map((name) => make("td", name))), (tr, event) => {
    const moment = new Date(event.time);
    texts(tr, [Number.isNaN(moment.getTime()) ? String(event.time) : moment.toLocaleTimeString("en-GB"), event.place, `${event.event}${event.dry_run ? " (dry run)" : ""}`, event.why]);
    tr.children[2].className = `what ${["error", "disconnected", "flow_refused"].includes(event.event) ? "error" : event.event === "threshold" ? "threshold" : ""}`;
  });
}
