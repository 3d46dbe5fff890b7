// The panel at the side: one layer, one group, the findings, or the whole model.

const panel = find("panel");

// Parts that have nothing to say are null.
const show = (...parts) => panel.replaceChildren(...parts.flat().filter(Boolean));

const section = (title, ...content) =>
  html("section", {}, html("h3", {}, title), ...content);
const row = (name, ...value) => html("tr", {}, html("th", {}, name), html("td", {}, ...value));
const table = (...rows) => html("table", {}, ...rows);

function layerLink(index, text) {
  return html("button", { class: "link", onclick: () => selectLayer(index) },
    text || layers[index].n || `(layer ${index})`);
}

function showLayer(index) {
  const layer = layers[index];
  const facts = layer.f === undefined ? {} : data.pool[layer.f];
  show(
    html("h2", {}, layer.t),
    html("p", { class: "name" }, layer.n),
    table(
      row("id", String(layer.i)),
      layer.of ? row("inside", `${bodyName(index)} of `, layerLink(layer.of[0])) : null,
      layer.v ? row("version", layer.v) : null,
      layer.l ? row("source", `${data.file || "the file"}:${layer.l}`) : null,
    ),
    findingsPart(findingsOf.get(index)),
    timePart(index),
    differencePart(index),
    attributesPart(layer),
    tensorsPart(layer),
    (layer.in || []).map((number, k) => constantPart(layer, number, k)),
    data.constants[index] ? constantFigures("Values", index) : null,
    picturesPart(index),
    bodiesPart(index),
    formulaPart(facts),
    pluginPart(layer),
    padsPart(facts),
    reachPart(layer),
    costPart(facts),
    geometryPart(facts),
  );
  panel.scrollTop = 0;
}

function findingsPart(list) {
  return list && section("Findings", html("ul", { class: "findings" }, list.map((f) => findingItem(f))));
}

function findingItem(f, onclick) {
  const place = f.line ? `line ${f.line}` : "";
  return html("li", { class: f.severity, onclick, tabindex: onclick ? 0 : null,
    onkeydown: (e) => { if (onclick && e.key === "Enter") onclick(); } },
    html("strong", {}, `${f.code || f.severity} ${f.rule}`), " ", html("span", { class: "faint" }, place),
    html("div", {}, f.message), f.hint ? html("div", { class: "faint" }, f.hint) : null);
}

function attributesPart(layer) {
  if (layer.a === undefined) return null;
  return section("Attributes", table(...data.pool[layer.a].map(([name, value]) => row(name, value))));
}

function tensorRow(name, number, other) {
  if (number < 0) return row(name, html("span", { class: "faint" }, "not connected"));
  const tensor = tensors[number];
  return row(name, html("code", {}, tensor.text),
    tensor.declared ? html("div", { class: tensor.wrong ? "wrong" : "faint" }, `declared: ${tensor.declared}`) : null,
    html("div", {}, other(tensor, number)),
    tensor.names.length ? html("div", { class: "faint" }, `named ${tensor.names.join(", ")}`) : null);
}

function tensorsPart(layer) {
  const inputs = (layer.in || []).map((number, k) =>
    tensorRow(inputName(layer, k), number, (tensor) => ["from ", layerLink(tensor.layer)]));
  const outputs = Array.from({ length: layer.k || 0 }, (_, k) =>
    tensorRow(layer.k > 1 ? `output ${k}` : "output", layer.o + k, (_, number) =>
      consumers[number].slice(0, 12).flatMap((to, at) => [at ? ", " : "to ", layerLink(to)])
        .concat(consumers[number].length > 12 ? [` and ${consumers[number].length - 12} more`] : [])));
  return section("Tensors", table(...inputs, ...outputs));
}

// The constant that an input comes from, through conversions.
function constantOf(number) {
  for (let hop = 0; number >= 0 && hop < 8; hop++) {
    const from = tensors[number].layer;
    if (data.constants[from]) return from;
    if (!layers[from].h) return -1;
    number = (layers[from].in || [-1])[0];
  }
  return -1;
}

function constantPart(layer, number, k) {
  const constant = number < 0 ? -1 : constantOf(number);
  return constant < 0 ? null : constantFigures(`Constant: ${inputName(layer, k)}`, constant);
}

function inputName(layer, k) {
  return (layer.p === undefined ? [] : data.pool[layer.p])[k] || `input ${k}`;
}

function constantFigures(title, index) {
  const figures = data.constants[index];
  const rows = [row("constant", layerLink(index), " ", html("code", {}, tensors[layers[index].o].text))];
  if (figures.sample)
    rows.push(row("estimated from", `${figures.sample[0]} of ${counted(figures.sample[1], "element")}`));
  const all = !figures.bins && figures.min === undefined;
  if (figures.values && all) rows.push(row("values", html("code", {}, figures.values.join(", "))));
  if (figures.min !== undefined)
    rows.push(row("range", `${figures.min} \u2026 ${figures.max}, mean ${figures.mean}`));
  if (figures.zeros !== undefined) rows.push(row("zeros", percent(figures.zeros)));
  if (figures.odd) rows.push(row("NaN, infinite", html("span", { class: "wrong" }, String(figures.odd))));
  return section(title, table(...rows), figures.bins ? histogram(figures) : null,
    figures.values && !all ? valuesPart(figures, tensors[layers[index].o].text) : null);
}

// The first values, in rows of the last axis where these are short.
function valuesPart({ values, sample, count }, text) {
  const dims = text.split(" ")[0].split(TIMES).map(Number), last = dims[dims.length - 1];
  const wide = last > 16 || last < 2 ? 8 : last * Math.max(1, Math.floor(8 / last)), lines = [];
  for (let k = 0; k < values.length; k += wide)
    lines.push(html("tr", {}, values.slice(k, k + wide).map((value) => html("td", {}, String(value)))));
  const total = dims.reduce((a, b) => a * b, 1), rest = total - values.length;
  return html("details", { class: "values" }, html("summary", {}, rest > 0 ? (sample ? "Values, a sample"
    : `The first ${values.length} of ${total} values`) : `All ${total} values`), html("div", { class: "scroll" },
    html("table", { class: "grid" }, lines)));
}

function histogram({ bins, min, max }) {
  const most = Math.max(...bins, 1), wide = 288 / bins.length;
  const bars = bins.map((count, k) => {
    const tall = count ? Math.max(1, 60 * count / most) : 0;
    return svg("rect", { class: "bar", x: k * wide, y: 62 - tall, width: wide - 1, height: tall },
      svg("title", {}, String(count)));
  });
  return svg("svg", { class: "histogram", viewBox: "0 0 288 76", width: 288, height: 76, role: "img",
    "aria-label": "histogram" }, ...bars,
    svg("text", { x: 0, y: 74 }, String(min)), svg("text", { x: 288, y: 74, class: "right" }, String(max)));
}

function bodiesPart(index) {
  const found = new Map();
  for (const inner of bodiesOf.get(index) || []) {
    const name = bodyName(inner);
    if (!found.has(name)) found.set(name, []);
    found.get(name).push(inner);
  }
  return [...found].map(([name, list]) => section(`${name}, ${counted(list.length, "layer")}`,
    html("ul", {}, list.filter((k) => !layers[k].h).slice(0, 50).map((k) =>
      html("li", {}, layers[k].t, " ", layerLink(k))))));
}

function formulaPart(facts) {
  return facts.formula && section("Shape", html("ul", { class: "formulas" },
    facts.formula.map((text) => html("li", {}, html("code", {}, text)))));
}

// Whether OpenVINO's CPU plugin computes a quantised layer in integers; if not, why.
function pluginPart(layer) {
  return layer.q !== undefined && section("OpenVINO's CPU plugin", html("p", {}, data.pool[layer.q]));
}

function padsPart(facts) {
  if (!facts.pads) return null;
  const [spec, runtime, name] = facts.pads;
  const shown = ([begin, end]) => html("code", {}, `begin ${begin.join(", ")}; end ${end.join(", ")}`);
  const same = JSON.stringify(spec) === JSON.stringify(runtime);
  return section("Pads", table(row("specification", shown(spec)), row(name, shown(runtime))),
    same ? null : html("p", { class: "wrong" },
      `The semantics differ; this page uses ${data.semantics}.`));
}

function reachPart(layer) {
  if (layer.r === undefined) return null;
  const axes = data.pool[layer.r];
  return section("Receptive field of an output, in the network's input", html("table", { class: "grid" },
    html("tr", {}, ...["axis", "elements, at most", "halo", "step"].map((t) => html("th", {}, t))),
    axes.map(([size, before, after, step], k) => html("tr", {},
      ...[k, size, `${before} + ${after}`, step].map((v) => html("td", {}, String(v)))))));
}

function costPart(facts) {
  if (!facts.flop && !facts.bytes) return null;
  return section("Cost", table(
    facts.flop ? row("arithmetic", scaled(facts.flop, "FLOP")) : null,
    facts.bytes ? row("reads and writes", bytes(facts.bytes)) : null,
    facts.flop && facts.bytes ? row("intensity", `${three(facts.flop / facts.bytes)} FLOP/byte`) : null));
}

function showGroup(number) {
  const box = boxes[number];
  const inside = levels[number].inside;
  show(html("h2", {}, box.title),
    table(row("layers", String(box.size)), box.count > 1 ? row("repeats", String(box.count)) : null),
    section(box.count > 1 ? "Blocks" : "Contents", html("ul", {}, inside.slice(0, 200).map((child) =>
      html("li", {}, html("button", { class: "link", onclick: () => selectBox(child) },
        `${boxes[child].title} \u2014 ${boxes[child].lines[0]}`)))),
    inside.length > 200 ? html("p", { class: "faint" }, `and ${inside.length - 200} more`) : null));
}

function showModel() {
  const counts = new Map();
  for (const layer of layers) counts.set(layer.t, (counts.get(layer.t) || 0) + 1);
  const kinds = [...counts].sort((a, b) => b[1] - a[1]);
  const ends = (type) => layers.map((layer, k) => [layer, k]).filter(([layer]) => layer.t === type && !layer.of).slice(0, 50);
  const shown = ([layer, k]) => row(layerLink(k), html("code", {},
    layer.k ? tensors[layer.o].text : (layer.in || []).map((t) => (t < 0 ? "?" : tensors[t].text)).join(", ")));
  const totals = data.totals || {};
  show(html("h2", {}, data.title || "Model"),
    table(row("file", data.file || "(not from a file)"), row("layers", totals.in_bodies
      ? `${layers.length - totals.in_bodies}, and ${totals.in_bodies} in bodies` : String(layers.length)),
      totals.flop ? row("arithmetic", scaled(totals.flop, "FLOP"), totals.in_bodies ? ", with each body once" : "") : null,
      totals.constant_bytes ? row("constants", `${totals.constants}, ${bytes(totals.constant_bytes)}`) : null,
      row("semantics", data.semantics)),
    profilePart(), comparedPart(), omittedPart(),
    section("Inputs", table(...ends("Parameter").map(shown))),
    section("Outputs", table(...ends("Result").map(shown))),
    section("Layers by type", html("table", { class: "grid" }, kinds.slice(0, 60).map(([kind, count]) =>
      html("tr", {}, html("td", {}, kind), html("td", {}, String(count)))))),
    html("p", { class: "faint" }, data.generator));
}

function showFindings() {
  const items = findings.slice(0, 2000).map((f) => findingItem(f, f.at < 0 ? null : () => selectLayer(f.at, true)));
  items.forEach((item, k) => {
    if (findings[k].at >= 0) item.querySelector("div").before(html("div", { class: "name" }, layers[findings[k].at].n));
  });
  show(html("h2", {}, findings.length ? counted(findings.length, "finding") : "No findings"),
    html("ul", { class: "findings" }, items),
    findings.length > 2000 ? html("p", { class: "faint" }, `and ${findings.length - 2000} more`) : null);
}
