// Places for the texts of tensors: the rules of drawing/labels.py, which tests hold it to.

const LETTER = 5.6, RISE = 8, FALL = 2, BESIDE = 6, BELOW = 13, ABOVE = 9, GRID = 16, DOT = 4;
const HEAD_LETTER = 6.6;

// Points of the drawing that labels should not cover.
class Taken {
  constructor() { this.cells = new Map(); }
  add(x, y) {
    const key = `${Math.floor(x / GRID)} ${Math.floor(y / GRID)}`;
    if (!this.cells.has(key)) this.cells.set(key, []);
    this.cells.get(key).push([x, y]);
  }
  count(x1, y1, x2, y2) {
    let found = 0;
    for (let cx = Math.floor(x1 / GRID); cx <= Math.floor(x2 / GRID); cx++)
      for (let cy = Math.floor(y1 / GRID); cy <= Math.floor(y2 / GRID); cy++)
        for (const [x, y] of this.cells.get(`${cx} ${cy}`) || [])
          if (x1 <= x && x <= x2 && y1 <= y && y <= y2) found++;
    return found;
  }
}

// `text`: number of a tensor -> its text; `several`: whether others leave its layer; `title`: of a box.
function placeLabels({ places, lines }, text, several, title) {
  const taken = new Taken();
  for (const place of places) takeBorder(taken, place, place.open ? title(place.box) : "");
  for (const line of lines) takeLine(taken, line);
  const starts = new Set(places.filter((p) => !p.open).map((p) => `${p.x + p.width / 2} ${p.y + p.height}`));
  const leaving = new Map();
  for (const line of lines) {
    if (!starts.has(`${line.x1} ${line.y1}`)) continue;
    const key = `${line.tensor} ${line.x1} ${line.y1}`;
    if (!leaving.has(key)) leaving.set(key, []);
    leaving.get(key).push(line);
  }
  const found = [];
  for (const list of leaving.values()) {
    const tensor = list[0].tensor, width = LETTER * [...text(tensor)].length;
    let best = null, least = Infinity;
    for (const [x, y] of candidates(list, width, several(tensor))) {
      const covered = taken.count(x - 1, y - RISE, x + width + 1, y + FALL);
      if (covered < least) [best, least] = [[x, y], covered];
      if (!covered) break;
    }
    const [x, y] = best;
    found.push({ tensor, x, y, width });
    for (let at = x; at <= x + width; at += DOT) {
      taken.add(at, y);
      taken.add(at, y - RISE / 2);
    }
  }
  return found;
}

function candidates(lines, width, several) {
  const [first] = lines;
  const found = several ? [] : [[first.x1 + BESIDE, first.y1 + BELOW], [first.x1 - BESIDE - width, first.y1 + BELOW]];
  for (const { x2, y2 } of lines) found.push([x2 + BESIDE, y2 - ABOVE], [x2 - BESIDE - width, y2 - ABOVE]);
  return found;
}

function takeLine(taken, { x1, y1, x2, y2 }) {
  const count = Math.floor(Math.max(Math.abs(x2 - x1), y2 - y1) / DOT) + 1;
  for (let k = 0; k <= count; k++) {
    const t = k / count, s = 1 - t, a = s * s * t * 3, b = s * t * t * 3;
    taken.add((s ** 3 + a) * x1 + (b + t ** 3) * x2, s ** 3 * y1 + (a + b) * (y1 + y2) / 2 + t ** 3 * y2);
  }
}

function takeBorder(taken, { x, y, width, height, open }, title) {
  if (open) {
    for (let k = 0; k <= Math.floor(HEAD_LETTER * [...title].length / DOT); k++) taken.add(x + 10 + k * DOT, y + 13);
    return;
  }
  for (let k = 0; k <= Math.floor(width / DOT); k++) {
    taken.add(x + k * DOT, y);
    taken.add(x + k * DOT, y + height);
  }
  for (let k = 0; k <= Math.floor(height / DOT); k++) {
    taken.add(x, y + k * DOT);
    taken.add(x + width, y + k * DOT);
  }
}
