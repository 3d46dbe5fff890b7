// Tensors as pictures, times and differences, where the page was given them.

// The bodies around a layer, inner ones first, and their numbers of runs: one for each of the inputs.
function runsAround(index) {
  const found = [];
  for (let at = index; layers[at].of; [at] = layers[at].of) {
    const runs = (data.runs || {})[`${layers[at].of[0]}:${bodyName(at)}`];
    if (runs) found.push({ owner: layers[at].of[0], body: bodyName(at), runs, most: Math.max(...runs) });
  }
  return found;
}

function picturesPart(index) {
  const around = runsAround(index), left = around.find(({ most }) => !most), shown = [];
  if (left)
    return section("Output of the run", html("p", { class: "faint" }, `The ${left.body} of `, layerLink(left.owner), " did not run."));
  for (let k = 0; k < (layers[index].k || 0); k++)
    for (const picture of (data.pictures || {})[`${index}:${k}`] || []) shown.push(figureOf(picture));
  const loops = around.filter(({ most }) => most > 1).map(({ owner, runs }) =>
    `in the last of ${[...new Set(runs)].join(" and ")} iterations of ${layers[owner].n}`);
  return shown.length ? section(`Output ${loops.length ? loops.join(", ") : "of the run"}`, shown) : null;
}

function figureOf({ title, source, width, height, low, high, line, note }) {
  const picture = line ? chart(line) : html("img", { src: source, width, height, alt: title });
  return html("figure", {}, picture, html("figcaption", {}, `${title}: ${low} \u2026 ${high}${note ? `; ${note}` : ""}`));
}

function chart(lines) {
  const all = lines.flat().filter((v) => v !== null);
  const least = Math.min(...all), span = Math.max(...all) - least || 1;
  const low = Math.max(...all) === least ? least - 0.5 : least; // a constant is in the middle
  const paths = lines.map((values, k) => svg("path", { class: "signal", stroke: COLOURS[k % COLOURS.length],
    d: values.map((v, at) => (v === null ? "" :
      `${at && values[at - 1] !== null ? "L" : "M"}${(at * 298 / Math.max(1, values.length - 1)).toFixed(1)} ` +
      `${(88 - 86 * (v - low) / span).toFixed(1)}`)).join("") }));
  return svg("svg", { class: "chart", width: 300, height: 90, viewBox: "0 0 300 90", role: "img" }, ...paths);
}

// Of a profile: layer -> [seconds, FLOP, name of what was fused, runs of the step, which are summed].
const timeOf = (index) => (data.profile ? data.profile.layers[index] : undefined);

function rate(flop, seconds) {
  const share = data.profile.peak ? `, ${percent(flop / seconds / data.profile.peak)} of ${
    scaled(data.profile.peak, "FLOP/s")}` : "";
  return `${scaled(flop / seconds, "FLOP/s")}${share}`;
}

function timePart(index) {
  const time = timeOf(index);
  if (!time) return null;
  const [seconds, flop, kind, runs] = time;
  return section("Time", table(row("step", kind), row("time", `${duration(seconds)}${
    runs > 1 ? ` in ${runs} runs` : ""}, ${percent(seconds / data.profile.seconds)} of all`),
    flop ? row("rate", rate(flop, seconds)) : null));
}

function omittedPart() {
  const omitted = (data.pictures || {})[""];
  return omitted ? html("p", { class: "faint" }, `${counted(omitted, "tensor")} without a picture: larger than --max-size ` +
    "allows, or empty.") : null;
}

function profilePart() {
  if (!data.profile) return null;
  const slowest = Object.entries(data.profile.layers).sort((a, b) => b[1][0] - a[1][0]).slice(0, 15);
  return section("Slowest steps", html("table", { class: "grid" }, slowest.map(([index, [seconds, flop, , runs]]) =>
    html("tr", {}, html("td", {}, layerLink(Number(index)), runs > 1 ? ` ${TIMES} ${runs}` : ""), html("td", {}, duration(seconds)),
      html("td", {}, flop ? scaled(flop / seconds, "FLOP/s") : "")))));
}

// Of a comparison: layer -> [relative error, RMS error, within the tolerance, note].
const differenceOf = (index) => (data.differences ? data.differences.layers[index] : undefined);

function differencePart(index) {
  const found = differenceOf(index);
  if (!found) return null;
  const [relative, rms, within, note] = found;
  return section(`Compared with ${data.differences.other}`, table(
    row("largest error", `${relative} of the largest magnitude`), row("RMS error", String(rms)),
    row("tolerance", within ? "kept" : html("span", { class: "wrong" }, "exceeded")),
    note ? row("note", note) : null));
}

function comparedPart() {
  if (!data.differences) return null;
  const list = data.differences.structure.map((text) => html("li", {}, text));
  const worst = Object.entries(data.differences.layers).filter(([, d]) => !d[2]).slice(0, 15);
  return section(`Compared with ${data.differences.other}`,
    data.differences.culprit ? html("p", { class: "wrong" }, data.differences.culprit) : null,
    html("p", {}, worst.length ? "Layers out of tolerance:" : "All tensors are within the tolerance."),
    html("ul", {}, worst.map(([index, d]) => html("li", {}, layerLink(Number(index)), ` ${d[0]}`))),
    list.length ? html("p", {}, "Differences in structure:") : null, html("ul", {}, list));
}

// Colour by a quantity

const QUANTITIES = {
  cost: (index) => (layers[index].f === undefined ? 0 : data.pool[layers[index].f].flop || 0),
  // Times of bodies are part of that of their layer.
  time: (index) => (bodiesOf.get(index) || []).reduce((rest, inner) => rest - (timeOf(inner) || [0])[0], (timeOf(index) || [0])[0]),
  error: (index) => { const d = differenceOf(index); return d ? (typeof d[0] === "number" ? d[0] : 1) : 0; },
};

function shadeBy(name) {
  const quantity = QUANTITIES[name];
  if (!quantity) return null;
  const sums = new Array(boxes.length).fill(0);
  layers.forEach((_, index) => {
    const value = quantity(index);
    for (let box = layers[index].b; box > 0 && value; box = boxes[box].parent)
      sums[box] = name === "error" ? Math.max(sums[box], value) : sums[box] + value;
  });
  let most = 0;
  boxes.forEach((box, k) => { if (box.layer >= 0) most = Math.max(most, sums[k]); });
  const scale_ = SCALES[name], end = most || 1e-300;
  const colour = (box) =>
    `color-mix(in srgb, var(--hot) ${Math.round(80 * Math.min(1, scale_.place(sums[box] / end)))}%, var(--cold))`;
  return { colour, scale: scale_, most, above: sums.some((sum, k) => k > 0 && sum > most) };
}

// How a share of the largest value becomes a colour, and the shares that the scale names.
const ROOT = { place: Math.sqrt, ticks: [0, 0.25, 1] };
const SCALES = {
  cost: { title: "arithmetic", text: (v) => scaled(v, "FLOP"), ...ROOT,
    none: "0, or not known: --shape gives dynamic dims a size" },
  time: { title: "time", text: duration, ...ROOT, none: "0" },
  error: { title: "largest error, of the largest magnitude", text: (v) => String(Number(v.toPrecision(2))),
    place: (share) => (share ? Math.max(0, 1 + Math.log10(share) / 8) : 0), ticks: [0, 1e-4, 1], none: "0 in all layers" },
};

function showScale(shade) {
  const legend = find("scale");
  legend.hidden = !shade;
  if (!shade) return;
  const { scale: { title, text, ticks, none }, most, above } = shade;
  if (!most) {
    legend.replaceChildren(html("div", {}, title), html("div", { class: "faint" }, none));
    return;
  }
  legend.replaceChildren(html("div", {}, title), html("div", { class: "ramp" }), html("div", { class: "ticks" },
    ticks.map((share) => html("span", {}, `${text(share * most)}${share === 1 && above ? " or more" : ""}`))));
}
