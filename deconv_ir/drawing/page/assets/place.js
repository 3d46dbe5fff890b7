// Coordinates of boxes and lines: the rules of drawing/placing.py, which tests hold it to.

const GAP = 26, PASS_GAP = 14, PASS_WIDTH = 8, ROW_GAP = 40, MARGIN = 18, HEAD = 26, SWEEPS = 6;

function placeAll(opened) {
  const inside = new Map();
  const numbers = [...new Set([0, ...opened])].sort((a, b) => b - a);
  for (const number of numbers) inside.set(number, measure(levels[number], inside));
  const places = [], lines = [];
  const stack = [[0, 0, 0]];
  while (stack.length) {
    const [number, x, y] = stack.pop();
    const layout = inside.get(number), level = levels[number];
    if (number) places.push({ box: number, x, y, width: layout.width, height: layout.height, open: true });
    level.inside.forEach((box, k) => {
      const within = inside.get(box);
      const width = within ? within.width : boxes[box].width;
      const height = layout.bottoms[k] - layout.tops[k];
      const left = x + layout.centres[k] - width / 2, top = y + layout.tops[k];
      if (within) stack.push([box, left, top]);
      else places.push({ box, x: left, y: top, width, height, open: false });
    });
    addLines(lines, level, layout, inside, x, y);
  }
  const { width, height } = inside.get(0);
  return { width, height, places, lines };
}

function offset(level, inside, entry, port) {
  if (entry >= level.inside.length) return 0;
  const layout = inside.get(level.inside[entry]);
  return layout ? layout.ports.get(port) - layout.width / 2 : 0;
}

function addLines(lines, level, layout, inside, x, y) {
  const fixed = level.inside.length + level.inputs.length + level.outputs.length;
  for (const [tensor, a, b] of level.links) {
    const x1 = x + layout.centres[a] + offset(level, inside, a, tensor);
    const x2 = x + layout.centres[b] + offset(level, inside, b, -1 - tensor);
    const top = y + layout.tops[b], bottom = y + layout.bottoms[b];
    const arrow = b < level.inside.length && !inside.has(level.inside[b]);
    const from = a < level.inside.length && !inside.has(level.inside[a]);
    lines.push({ tensor, x1, y1: y + layout.bottoms[a], x2, y2: top, arrow, from });
    if (b >= fixed && bottom > top)
      lines.push({ tensor, x1: x2, y1: top, x2, y2: bottom, arrow: false, from: false });
  }
}

function measure(level, inside) {
  let count = 0;
  for (const row of level.rows) for (const entry of row) count = Math.max(count, entry + 1);
  const width = new Array(count).fill(PASS_WIDTH), height = new Array(count).fill(0);
  level.inside.forEach((box, k) => {
    const size = inside.get(box) || boxes[box];
    width[k] = size.width;
    height[k] = size.height;
  });
  const centres = centresOf(level, width, inside);
  let left = Infinity, right = -Infinity;
  centres.forEach((c, e) => {
    left = Math.min(left, c - width[e] / 2);
    right = Math.max(right, c + width[e] / 2);
  });
  if (!count) left = right = 0;
  for (let e = 0; e < count; e++) centres[e] += MARGIN - left;
  const fixed = level.inside.length + level.inputs.length + level.outputs.length;
  const tops = new Array(count).fill(0), bottoms = new Array(count).fill(0);
  let y = HEAD;
  for (let r = 0; r < level.rows.length; r++) {
    if (level.inputs.length && r === 0) { y += ROW_GAP / 4; continue; }
    if (level.outputs.length && r + 1 === level.rows.length) break;
    const row = level.rows[r];
    const tall = row.reduce((most, e) => Math.max(most, height[e]), 0);
    for (const e of row) {
      const room = e >= fixed ? tall : height[e];
      tops[e] = y + (tall - room) / 2;
      bottoms[e] = tops[e] + room;
    }
    y += tall + ROW_GAP;
  }
  const total = Math.max(HEAD, y - ROW_GAP + MARGIN);
  const ports = new Map();
  level.inputs.forEach((tensor, k) => ports.set(-1 - tensor, centres[level.inside.length + k]));
  level.outputs.forEach((tensor, k) => {
    const e = level.inside.length + level.inputs.length + k;
    ports.set(tensor, centres[e]);
    tops[e] = bottoms[e] = total;
  });
  return { width: right - left + 2 * MARGIN, height: total, centres, tops, bottoms, ports };
}

function centresOf(level, width, inside) {
  const above = width.map(() => []), below = width.map(() => []);
  for (const [tensor, a, b] of level.links) {
    const shift = offset(level, inside, a, tensor) - offset(level, inside, b, -1 - tensor);
    above[b].push([a, shift]);
    below[a].push([b, -shift]);
  }
  const centres = new Array(width.length).fill(0);
  const apart = level.rows.map((row) => {
    let at = 0;
    const steps = row.map((e, k) => {
      if (k) {
        const before = row[k - 1];
        const solid = e < level.inside.length && before < level.inside.length;
        at += (width[before] + width[e]) / 2 + (solid ? GAP : PASS_GAP);
      }
      return at;
    });
    row.forEach((e, k) => { centres[e] = steps[k] - at / 2; });
    return steps;
  });
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const near = sweep % 2 ? below : above;
    for (let k = 0; k < level.rows.length; k++) {
      const r = sweep % 2 ? level.rows.length - 1 - k : k;
      const row = level.rows[r];
      const wanted = row.map((e, at) => {
        let sum = 0;
        for (const [f, shift] of near[e]) sum += centres[f] + shift;
        return (near[e].length ? sum / near[e].length : centres[e]) - apart[r][at];
      });
      monotone(wanted).forEach((x, at) => { centres[row[at]] = x + apart[r][at]; });
    }
  }
  return centres;
}

function monotone(wanted) {
  const sums = [], counts = [];
  for (const value of wanted) {
    sums.push(value);
    counts.push(1);
    for (let n = sums.length; n > 1 && sums[n - 2] * counts[n - 1] > sums[n - 1] * counts[n - 2]; n--) {
      const sum = sums.pop(), count = counts.pop();
      sums[n - 2] += sum;
      counts[n - 2] += count;
    }
  }
  return sums.flatMap((sum, k) => new Array(counts[k]).fill(sum / counts[k]));
}
