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
  const bar = objects.rows[0]?.bar ? 1 : 0, kind = (i) => (i === bar && bar ? "queue" : i > bar ? "num" : "");
  const key = objects.head.join("|") + bar;
  if (table.dataset.head !== key) {
    table.dataset.head = key;
    table.tHead.replaceChildren(make("tr", "", ...objects.head.map((name, i) => make("th", i > bar ? "num" : "", name))));
    table.tBodies[0].replaceChildren();
  }
  const create = () => make("tr", "", ...objects.head.map((_, i) => make("td", kind(i), ...(kind(i) === "queue" ? [make("div", "bar", make("i"), make("b"))] : []))));
  rows(table.tBodies[0], objects.rows, create, (tr, one) => {
    one.cells.forEach((text, i) => {
      if (kind(i) !== "queue") put(tr.children[i], text);
      tr.children[i].classList.toggle("bad", one.bad.includes(i));
    });
    tr.classList.toggle("idle", one.idle);
    if (!bar) return;
    const [fill, mark] = tr.children[1].firstElementChild.children, [part, limit] = one.bar;
    fill.style.width = `${Math.min(100, 100 * part)}%`;
    fill.style.background = colorOf(one.cells[0]);
    mark.hidden = limit == null;
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
