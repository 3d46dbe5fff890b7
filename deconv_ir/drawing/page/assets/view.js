// The drawing: what is visible of it becomes SVG, and moves as one while it is panned.

const canvas = find("canvas"), stage = find("stage");
const opened = new Set(data.open || []);
const DETAIL = 0.33; // below this scale, boxes are drawn without text
const EDGE = 24;
let scene = { width: 0, height: 0, places: [], lines: [] };
let placeOf = new Map();
let labels = null; // of the scene; placed when they are first drawn
let scale = 1, left = 0, top_ = 0; // of the scene's origin, in pixels of the window
let drawn = null; // the region that is drawn
let selected = { box: -1, layer: -1 };
let shade = null; // where boxes show a quantity

// How many tensors of each layer are drawn.
const outputsOf = new Map();
for (const number of data.lines || []) {
  const { layer } = tensors[number];
  outputsOf.set(layer, (outputsOf.get(layer) || 0) + 1);
}

function layOut() {
  scene = placeAll(opened);
  placeOf = new Map(scene.places.map((place) => [place.box, place]));
  labels = null;
  drawn = null;
}

function view() {
  const { width, height } = canvas.getBoundingClientRect();
  return { x: -left / scale, y: -top_ / scale, width: width / scale, height: height / scale };
}

function covers(outer, inner) {
  return outer && outer.x <= Math.max(0, inner.x) && outer.y <= Math.max(0, inner.y) &&
    outer.x + outer.width >= Math.min(scene.width, inner.x + inner.width) &&
    outer.y + outer.height >= Math.min(scene.height, inner.y + inner.height);
}

let waiting = false;
function refresh() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    stage.setAttribute("transform", `translate(${left} ${top_}) scale(${scale})`);
    const seen = view(), detail = scale >= DETAIL;
    if (covers(drawn, seen) && drawn.detail === detail) return;
    const room = detail ? 0.6 : 2;
    draw({
      x: seen.x - room * seen.width, y: seen.y - room * seen.height,
      width: (1 + 2 * room) * seen.width, height: (1 + 2 * room) * seen.height, detail,
    });
  });
}

function draw(region) {
  drawn = region;
  const right = region.x + region.width, bottom = region.y + region.height;
  const places = scene.places.filter((p) =>
    p.x < right && p.x + p.width > region.x && p.y < bottom && p.y + p.height > region.y);
  const lines = scene.lines.filter((l) =>
    l.y1 < bottom && l.y2 > region.y && Math.min(l.x1, l.x2) < right && Math.max(l.x1, l.x2) > region.x);
  stage.replaceChildren();
  for (const place of places) if (place.open) stage.append(openBox(place, region.detail));
  drawLines(lines, region.detail);
  if (region.detail) drawLabels(region);
  if (region.detail) for (const place of places) { if (!place.open) stage.append(closedBox(place)); }
  else drawShapes(places);
}

function curve(l) {
  const bend = (l.y2 - l.y1) / 2;
  return l.x1 === l.x2 ? `M${l.x1} ${l.y1}V${l.y2}`
    : `M${l.x1} ${l.y1}C${l.x1} ${l.y1 + bend} ${l.x2} ${l.y2 - bend} ${l.x2} ${l.y2}`;
}

function drawLines(lines, detail) {
  const chosen = new Set(selected.layer < 0 ? [] : tensorsAt(selected.layer));
  for (const picked of [false, true]) {
    const some = lines.filter((l) => chosen.has(data.lines[l.tensor]) === picked);
    if (!some.length) continue;
    const group = svg("g", { class: picked ? "lines picked" : "lines" });
    group.append(svg("path", { d: some.map(curve).join("") }));
    if (detail) {
      const tips = some.filter((l) => l.arrow);
      group.append(svg("path", {
        class: "tips", d: tips.map((l) => `M${l.x2} ${l.y2}l-3.5 -7h7z`).join(""),
      }));
    }
    stage.append(group);
  }
}

function drawLabels(region) {
  const drawnTensor = (number) => tensors[data.lines[number]];
  labels = labels || placeLabels(scene, (number) => drawnTensor(number).text,
    (number) => outputsOf.get(drawnTensor(number).layer) > 1, (box) => headOf(boxes[box]));
  for (const { tensor, x, y, width } of labels)
    if (x < region.x + region.width && x + width > region.x && y < region.y + region.height && y > region.y)
      stage.append(svg("text", { class: "shape", x, y }, drawnTensor(tensor).text));
}

function classOf(place, kind) {
  const mark = marks.get(place.box), box = boxes[place.box];
  const chosen = place.box === selected.box ? " chosen" : "";
  return `${kind} f-${box.family}${mark ? ` mark-${mark}` : ""}${chosen}`;
}

// An open layer, whose bodies are shown, has its name next to its type.
function headOf(box) {
  return box.layer < 0 ? box.title : `${box.title} ${box.lines[0]}`;
}

function frame(place) {
  return { x: place.x, y: place.y, width: place.width, height: place.height, rx: 5 };
}

function openBox(place, detail) {
  const group = svg("g", { class: classOf(place, "open") }, svg("rect", frame(place)));
  if (detail) group.append(svg("text", { class: "title", x: place.x + 11, y: place.y + 17 },
    `\u25be ${headOf(boxes[place.box])}`));
  return group;
}

function closedBox(place) {
  const box = boxes[place.box], middle = place.x + place.width / 2;
  const fill = shade && shade.colour(place.box);
  const group = svg("g", { class: classOf(place, fill ? "box shaded" : "box"), "data-box": place.box });
  if (box.count > 1) for (const step of [6, 3])
    group.append(svg("rect", { ...frame(place), x: place.x + step, y: place.y + step }));
  group.append(filled(svg("rect", frame(place)), fill));
  const title = levels[place.box] ? `\u25b8 ${box.title}` : box.title;
  group.append(svg("text", { class: "title", x: middle, y: place.y + 18 }, title));
  box.lines.forEach((line, k) => group.append(
    svg("text", { class: k ? "detail" : "name", x: middle, y: place.y + 33 + 14 * k }, line)));
  const mark = marks.get(place.box);
  if (mark) group.append(
    svg("circle", { class: `badge ${mark}`, cx: place.x + place.width, cy: place.y, r: 8 }),
    svg("text", { class: "bang", x: place.x + place.width, y: place.y + 4 }, mark === "info" ? "i" : "!"));
  return group;
}

// From afar, all boxes of a colour are one path.
function drawShapes(places) {
  const paths = new Map();
  for (const place of places) {
    if (place.open) continue;
    const fill = shade && shade.colour(place.box);
    const key = fill || classOf(place, "box far");
    if (!paths.has(key)) paths.set(key, { fill, parts: [] });
    paths.get(key).parts.push(`M${place.x} ${place.y}h${place.width}v${place.height}h${-place.width}z`);
  }
  for (const [key, { fill, parts }] of paths)
    stage.append(filled(svg("path", { class: fill ? "box far" : key, d: parts.join("") }), fill));
}

// The policy of the page forbids style attributes, not what scripts set.
function filled(shape, colour) {
  if (colour) shape.style.fill = colour;
  return shape;
}

function boxAt(clientX, clientY) {
  const area = canvas.getBoundingClientRect();
  const x = (clientX - area.left - left) / scale, y = (clientY - area.top - top_) / scale;
  const within = (p) => x >= p.x && x <= p.x + p.width && y >= p.y && y <= p.y + p.height;
  const closed = scene.places.find((p) => !p.open && within(p));
  if (closed) return closed;
  const heads = scene.places.filter((p) => p.open && within(p) && y <= p.y + HEAD);
  return heads[heads.length - 1] || null;
}

// Moving

function zoom(factor, x, y) {
  const area = canvas.getBoundingClientRect();
  x = x === undefined ? area.width / 2 : x - area.left;
  y = y === undefined ? area.height / 2 : y - area.top;
  const next = Math.min(4, Math.max(0.005, scale * factor));
  left = x - (x - left) * next / scale;
  top_ = y - (y - top_) * next / scale;
  scale = next;
  refresh();
}

function fit() {
  const area = canvas.getBoundingClientRect();
  scale = Math.min(1.2, (area.width - 2 * EDGE) / scene.width, (area.height - 2 * EDGE) / scene.height);
  scale = Math.max(0.005, scale);
  left = (area.width - scene.width * scale) / 2;
  top_ = Math.max(EDGE, (area.height - scene.height * scale) / 2);
  refresh();
}

// The whole drawing where it can be read; else its top.
function start() {
  fit();
  if (scale >= 0.6) return;
  const area = canvas.getBoundingClientRect();
  scale = Math.max(0.6, Math.min(1, (area.width - 2 * EDGE) / scene.width));
  const first = scene.places.find((p) => !p.open) || { x: 0, width: scene.width };
  left = scene.width * scale <= area.width ? (area.width - scene.width * scale) / 2
    : area.width / 2 - (first.x + first.width / 2) * scale;
  top_ = EDGE;
  refresh();
}

function centre(place) {
  const area = canvas.getBoundingClientRect();
  if (scale < 0.6) scale = 0.9;
  left = area.width / 2 - (place.x + place.width / 2) * scale;
  const height = Math.min(place.height, area.height / scale / 2);
  top_ = area.height / 2 - (place.y + height / 2) * scale;
  refresh();
}

// Opening and closing keeps the box where it is on the screen.
function toggle(box) {
  const before = placeOf.get(box);
  if (opened.has(box)) opened.delete(box);
  else opened.add(box);
  layOut();
  const after = placeOf.get(box);
  if (before && after) {
    left += (before.x + before.width / 2 - after.x - after.width / 2) * scale;
    top_ += (before.y - after.y) * scale;
  }
  refresh();
}

// Groups all the way out are opened, so that a box can be seen.
function reveal(box) {
  let changed = false;
  for (let group = boxes[box].parent; group > 0; group = boxes[group].parent)
    if (!opened.has(group)) { opened.add(group); changed = true; }
  if (changed) layOut();
  drawn = null;
  if (!isReadable(placeOf.get(box))) centre(placeOf.get(box));
}

// Whether a box is in view as a whole, large enough for its text.
function isReadable({ x, y, width, height }) {
  const area = canvas.getBoundingClientRect(), x1 = left + x * scale, y1 = top_ + y * scale;
  return scale >= 0.6 && x1 >= 0 && y1 >= 0 && x1 + width * scale <= area.width && y1 + height * scale <= area.height;
}

function tensorsAt(layer) {
  const { in: taken = [], o: first = 0, k: count = 0 } = layers[layer];
  const own = Array.from({ length: count }, (_, k) => first + k);
  return [...taken, ...own];
}
