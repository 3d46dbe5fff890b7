// Mouse, keyboard, search, and the start.

function selectBox(number, where) {
  const layer = boxes[number].layer;
  selected = { box: number, layer };
  if (where !== "here") reveal(number);
  if (layer >= 0) showLayer(layer);
  else showGroup(number);
  showTab("layer");
  drawn = null;
  refresh();
  if (layer >= 0) history.replaceState(null, "", `#layer=${addressOf(layer)}`);
}

function selectLayer(index) {
  selectBox(layers[index].b);
  if (layers[index].h) showLayer(index); // a constant, drawn as part of what takes it
  selected.layer = index;
}

const tabs = { layer: find("tab-layer"), findings: find("tab-findings"), model: find("tab-model") };
function showTab(name) {
  for (const [key, tab] of Object.entries(tabs)) tab.setAttribute("aria-selected", key === name);
  if (name === "findings") showFindings();
  if (name === "model") showModel();
}
tabs.findings.addEventListener("click", () => showTab("findings"));
tabs.model.addEventListener("click", () => showTab("model"));
tabs.layer.addEventListener("click", () => {
  if (selected.layer >= 0) { showLayer(selected.layer); showTab("layer"); }
  else if (selected.box > 0) { showGroup(selected.box); showTab("layer"); }
});

// Mouse and touch

let dragged = null;
const fingers = new Map();
canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  fingers.set(event.pointerId, event);
  dragged = { x: event.clientX, y: event.clientY, moved: false };
});
canvas.addEventListener("pointermove", (event) => {
  if (!dragged || !fingers.has(event.pointerId)) return;
  if (fingers.size === 2) {
    const [a, b] = [...fingers.values()];
    const before = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
    fingers.set(event.pointerId, event);
    const [c, d] = [...fingers.values()];
    zoom(Math.hypot(c.clientX - d.clientX, c.clientY - d.clientY) / before, (c.clientX + d.clientX) / 2,
      (c.clientY + d.clientY) / 2);
    dragged.moved = true;
    return;
  }
  const dx = event.clientX - dragged.x, dy = event.clientY - dragged.y;
  if (!dragged.moved && Math.hypot(dx, dy) < 4) return;
  dragged = { x: event.clientX, y: event.clientY, moved: true };
  left += dx;
  top_ += dy;
  refresh();
});
canvas.addEventListener("pointerup", (event) => {
  fingers.delete(event.pointerId);
  if (dragged && !dragged.moved) clicked(event);
  dragged = null;
});
canvas.addEventListener("pointercancel", (event) => { fingers.delete(event.pointerId); dragged = null; });
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  if (event.ctrlKey || event.metaKey || !event.shiftKey)
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.clientX, event.clientY);
  else { left -= event.deltaX + event.deltaY; refresh(); }
}, { passive: false });

function clicked(event) {
  const place = boxAt(event.clientX, event.clientY);
  if (!place) return;
  if (levels[place.box]) toggle(place.box);
  selectBox(place.box, "here");
}

// Search

const search = find("search"), results = find("results");
const haystack = layers.map((layer) => `${layer.n}\n${layer.t}\n${layer.i}`.toLowerCase());
let hits = [], hit = -1;

function look() {
  const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  hits = [];
  hit = -1;
  if (words.length)
    for (let k = 0; k < haystack.length; k++) if (words.every((word) => haystack[k].includes(word))) hits.push(k);
  results.hidden = !words.length;
  results.replaceChildren(
    html("li", { class: "faint" }, hits.length === 1 ? "1 layer" : `${hits.length} layers`),
    ...hits.slice(0, 40).map((index, k) => html("li", { class: "hit", role: "option", onclick: () => go(k) },
      html("strong", {}, layers[index].t), " ", layers[index].n)));
}

function go(k) {
  if (!hits.length) return;
  hit = (k + hits.length) % hits.length;
  selectLayer(hits[hit]);
  results.hidden = true;
  find("count").textContent = `${hit + 1} of ${hits.length}`;
}

search.addEventListener("input", look);
search.addEventListener("keydown", (event) => {
  // Afterwards n and N, as keys of the page, lead to the next and previous layer.
  if (event.key === "Enter") { go(hit + (event.shiftKey ? -1 : 1)); if (hits.length) search.blur(); }
  if (event.key === "Escape") { results.hidden = true; search.blur(); }
  event.stopPropagation();
});
document.addEventListener("pointerdown", (event) => {
  if (!event.target.closest(".search")) results.hidden = true;
});

// Keyboard

function step(key) {
  if (selected.box < 0) {
    const first = scene.places.find((p) => !p.open);
    if (first) selectBox(first.box);
    return;
  }
  const here = placeOf.get(selected.box);
  if (!here) return;
  const x = here.x + here.width / 2, y = here.y + (here.open ? 0 : here.height / 2);
  let best = null, least = Infinity;
  for (const place of scene.places) {
    if (place === here) continue;
    const dx = place.x + place.width / 2 - x, dy = place.y + (place.open ? 0 : place.height / 2) - y;
    const [ahead, aside] = { ArrowDown: [dy, dx], ArrowUp: [-dy, dx], ArrowRight: [dx, dy], ArrowLeft: [-dx, dy] }[key];
    if (ahead < 4) continue;
    const cost = ahead + 3 * Math.abs(aside);
    if (cost < least) [best, least] = [place, cost];
  }
  if (best) selectBox(best.box);
}

const keys = {
  "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: fit, f: fit,
  "/": () => { search.focus(); search.select(); },
  n: () => go(hit + 1), N: () => go(hit - 1),
  Enter: () => { if (selected.box > 0 && levels[selected.box]) { toggle(selected.box); selectBox(selected.box); } },
  c: () => closeAll(),
  "?": () => find("help").showModal(),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const around = (what) => event.target.closest && event.target.closest(what);
  if (around("select, dialog")) return;
  // The panel scrolls by arrows; links, buttons and findings have their own Enter.
  if (around("#panel") && (event.key.startsWith("Arrow") || event.key === "Enter")) return;
  if (around("button, summary") && event.key === "Enter") return;
  const act = event.key.startsWith("Arrow") ? () => step(event.key) : keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

function closeAll() {
  opened.clear();
  for (const box of data.open || []) opened.add(box);
  layOut();
  start();
}

find("fit").addEventListener("click", fit);
find("in").addEventListener("click", () => zoom(1.25));
find("out").addEventListener("click", () => zoom(0.8));
find("reset").addEventListener("click", closeAll);
find("question").addEventListener("click", () => find("help").showModal());
find("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
find("colour").addEventListener("change", (event) => {
  shade = shadeBy(event.target.value);
  showScale(shade);
  drawn = null;
  refresh();
});
addEventListener("resize", refresh);

// Paper shows the whole drawing, with all text.
addEventListener("beforeprint", () => {
  canvas.setAttribute("viewBox", `0 0 ${scene.width} ${scene.height}`);
  stage.setAttribute("transform", "");
  draw({ x: 0, y: 0, width: scene.width, height: scene.height, detail: true });
});
addEventListener("afterprint", () => {
  canvas.removeAttribute("viewBox");
  drawn = null;
  refresh();
});

// Ids are unique within a graph: those of a body follow its layer's.
function addressOf(index) {
  const { i, of: part } = layers[index];
  return part ? `${addressOf(part[0])}/${bodyName(index)}/${i}` : String(i);
}

// The layer that the end of the address names, by its id or its name.
function followAddress() {
  const [, wanted] = /^#layer=(.+)$/.exec(location.hash) || [];
  if (!wanted) return false;
  let name = wanted;
  try { name = decodeURIComponent(wanted); } catch { /* not encoded */ }
  let index = layers.findIndex((_, k) => addressOf(k) === wanted);
  if (index < 0) index = layers.findIndex((layer) => layer.n === name);
  if (index >= 0) selectLayer(index);
  return index >= 0;
}
addEventListener("hashchange", followAddress);

function begin() {
  find("title").textContent = data.title || data.file || "model";
  find("tab-findings").textContent = findings.length ? `Findings (${findings.length})` : "Findings";
  for (const [name, present] of [["time", data.profile], ["error", data.differences]])
    if (!present) find("colour").querySelector(`[value=${name}]`).remove();
  if (boxes.length) { layOut(); start(); }
  else find("nothing").hidden = false;
  if (!followAddress()) showTab(findings.length ? "findings" : "model");
  // Tests wait for this: the first frame with the drawing has been painted.
  requestAnimationFrame(() => setTimeout(() => { document.documentElement.dataset.ready = Math.round(performance.now()); }));
}
begin();
