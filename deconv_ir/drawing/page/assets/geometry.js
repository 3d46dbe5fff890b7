// Pictures of a transposed convolution: how one axis lines up, and how many taps outputs sum.

const COLOURS = @DISTINCT@;
const CELL = 20, SHOWN = 26, LEAD = 96;

function geometryPart(facts) {
  if (!facts.taps) return null;
  const axes = facts.axes.map(([data_, kernel, stride, dilation, extra, begin, end, output]) =>
    ({ data: data_, kernel, stride, dilation, extra, begin, end, output }));
  const alike = axes.every((axis) => JSON.stringify(axis) === JSON.stringify(axes[0]));
  const strips = (alike ? axes.slice(0, 1) : axes).map((axis, k) => html("figure", {},
    html("figcaption", {}, alike ? (axes.length > 1 ? "each axis" : "the axis") : `axis ${k}`),
    html("div", { class: "scroll" }, strip(axis)), html("figcaption", {}, noteOf(axis))));
  return section("Geometry", ...strips,
    html("h3", {}, "Taps that each output sums"),
    heat(facts.taps),
    facts.advice ? html("p", { class: "advice" }, facts.advice)
      : html("p", { class: "faint" }, "All outputs away from the borders sum equally many taps."));
}

// Which data elements add to position t of the natural output, as in ir/geometry.py.
function sourcesOf(axis, t) {
  const found = [];
  for (let k = 0; k < axis.kernel && found.length < 8; k++) {
    const from = t - axis.dilation * k;
    if (from >= 0 && from % axis.stride === 0 && from / axis.stride < axis.data) found.unshift(from / axis.stride);
  }
  return found;
}

const naturalOf = (axis) => axis.stride * (axis.data - 1) + (axis.kernel - 1) * axis.dilation + 1;

// The positions that are drawn, and whether these are all.
function shownOf(axis) {
  const first = Math.min(0, axis.begin), end = Math.max(naturalOf(axis) + axis.extra, axis.begin + axis.output);
  return { first, stop: Math.min(first + SHOWN, end), cut: first + SHOWN < end };
}

function noteOf(axis) {
  return `K ${axis.kernel}, stride ${axis.stride}, dilation ${axis.dilation}, pads ${axis.begin} and ${axis.end}` +
    (axis.extra ? `, output_padding ${axis.extra}` : "") + (shownOf(axis).cut ? ` (the first ${SHOWN} positions)` : "");
}

function strip(axis) {
  const natural = naturalOf(axis), { first, stop } = shownOf(axis);
  const at = (t) => LEAD + (t - first) * CELL;
  const parts = [];
  const cell = (t, y, fill, text, cls) => {
    if (t < first || t >= stop) return;
    parts.push(svg("rect", { class: cls || "cell", x: at(t), y, width: CELL, height: CELL, fill }));
    if (text) parts.push(svg("text", { class: cls === "zero" ? "zero" : "ink", x: at(t) + CELL / 2, y: y + 14 }, text));
  };
  const striped = (t, y) => {
    const from = t >= 0 && t < natural ? sourcesOf(axis, t) : [];
    if (!from.length) return cell(t, y, null, "0", "zero");
    from.forEach((x, k) => parts.push(svg("rect", { x: at(t), y: y + k * CELL / from.length, width: CELL,
      height: CELL / from.length, fill: COLOURS[x % COLOURS.length] })));
    cell(t, y, "none");
  };
  const label = (y, text) => parts.push(svg("text", { class: "label", x: LEAD - 8, y: y + 14 }, text));
  let y = 4;
  label(y, `data, X = ${axis.data}`);
  for (let x = 0; x < axis.data && axis.stride * x < stop; x++) {
    cell(axis.stride * x, y, COLOURS[x % COLOURS.length], `x${x}`);
    for (let z = 1; z < axis.stride && x + 1 < axis.data; z++) cell(axis.stride * x + z, y, null, "0", "zero");
  }
  const spread = Math.min(axis.data, 3);
  for (let x = 0; x < spread; x++) {
    y += CELL + 8;
    label(y, `x${x} ${TIMES} filter`);
    for (let k = 0; k < axis.kernel; k++)
      cell(axis.stride * x + axis.dilation * k, y, COLOURS[x % COLOURS.length], `k${k}`);
  }
  if (spread < axis.data) {
    y += CELL;
    parts.push(svg("text", { class: "label", x: LEAD - 8, y: y + 8 }, "\u2026"));
  }
  y += CELL + 8;
  label(y, `sum, F = ${natural}`);
  for (let t = 0; t < Math.min(stop, natural + axis.extra); t++) {
    if (t < natural) striped(t, y);
    else cell(t, y, "none", "+", "extra");
    if (t < axis.begin || t >= axis.begin + axis.output)
      parts.push(svg("path", { class: "crop", d: `M${at(t)} ${y + CELL}l${CELL} ${-CELL}M${at(t)} ${y}l${CELL} ${CELL}` }));
  }
  y += CELL + 8;
  label(y, `output, Y = ${axis.output}`);
  for (let t = axis.begin; t < Math.min(stop, axis.begin + axis.output); t++) striped(t, y);
  const width = at(stop) + 4, height = y + CELL + 6;
  return svg("svg", { class: "strip", width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": noteOf(axis) }, ...parts);
}

// One or two axes as a map of the output's corner; with three, the last two.
function heat(taps) {
  const [rows, columns] = taps.length > 1 ? taps.slice(-2) : [[1], taps[0]];
  const tall = Math.min(rows.length, 16), wide = Math.min(columns.length, 16);
  let most = 1;
  for (let r = 0; r < tall; r++) for (let c = 0; c < wide; c++) most = Math.max(most, rows[r] * columns[c]);
  const size = Math.max(18, Math.min(22, Math.floor(300 / wide)));
  const cells = [];
  for (let r = 0; r < tall; r++) for (let c = 0; c < wide; c++) {
    const count = rows[r] * columns[c];
    const cell = svg("rect", { x: c * size, y: r * size, width: size, height: size,
      class: count ? "tap" : "hole", "fill-opacity": count ? 0.08 + 0.92 * count / most : null },
      svg("title", {}, `${count} taps`));
    cells.push(cell);
    cells.push(svg("text", { class: count > most / 2 ? "over" : "under", x: (c + 0.5) * size,
      y: (r + 0.5) * size + 3.5 }, String(count)));
  }
  const cut = tall < rows.length || wide < columns.length;
  return html("figure", {}, svg("svg", { class: "heat", width: wide * size, height: tall * size, role: "img",
    "aria-label": "taps of each output" }, ...cells),
    html("figcaption", {}, `${taps.length > 2 ? "last two axes, " : ""}${cut ? "first outputs, " : ""}` +
      (most > 1 ? `up to ${most} taps, faint to strong` : "1 tap") + "; red: none"));
}
