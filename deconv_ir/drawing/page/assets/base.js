"use strict";
// The data of the page, and the few helpers that build elements. Text only ever becomes text
// nodes: names and attributes come from files that nobody has to trust.

const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const TIMES = "\u00d7";

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

const html = (tag, attributes, ...children) =>
  build(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  build(document.createElementNS(SVG, tag), attributes, children);
const find = (id) => document.getElementById(id);

// Numbers for people: three digits, or all digits of what is before the point.
const three = (value) => (Math.abs(value) >= 99.95 ? value.toFixed(0) : value.toPrecision(3));

function inUnits(value, units, rest) {
  for (const [size, unit] of units) if (value >= 0.9995 * size) return `${three(value / size)} ${unit}`;
  return rest(value);
}

const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const scaled = (value, unit) => inUnits(value, PREFIXES.map(([size, prefix]) => [size, prefix + unit]),
  () => `${Number(value.toPrecision(3))} ${unit}`);

const bytes = (value) => inUnits(value, [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]],
  () => counted(value, "byte"));

const duration = (seconds) => (seconds ? inUnits(seconds, [[1, "s"], [1e-3, "ms"]], () => `${three(1e6 * seconds)} \u00b5s`) : "0");

function percent(share) {
  const value = 100 * share;
  if (value > 0 && value < 0.1) return "less than 0.1 %";
  return `${value < 9.95 ? value.toFixed(1) : value.toFixed(0)} %`;
}

const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

// One name for each column of the data that Python writes.
const boxes = (data.boxes || []).map(([title, lines, family, width, height, layer, count, size]) => (
  { title, lines, family, width, height, layer, count, size, parent: -1 }
));
const levels = {};
for (const [number, [inside, inputs, outputs, rows, flat]] of Object.entries(data.levels || {})) {
  const links = [];
  for (let k = 0; k < flat.length; k += 3) links.push([flat[k], flat[k + 1], flat[k + 2]]);
  levels[number] = { inside, inputs, outputs, rows, links };
  for (const box of inside) boxes[box].parent = Number(number);
}
const layers = data.layers || [];
const tensors = (data.tensors || []).map(([layer, output, text, declared, names, wrong]) => ({
  layer, output, text: data.pool[text], names: names || [], wrong: Boolean(wrong),
  declared: declared === undefined ? "" : data.pool[declared],
}));
// Layer -> the layers of its bodies.
const bodiesOf = new Map();
layers.forEach(({ of: part }, index) => {
  if (!part) return;
  if (!bodiesOf.has(part[0])) bodiesOf.set(part[0], []);
  bodiesOf.get(part[0]).push(index);
});
const bodyName = (index) => data.pool[layers[index].of[1]];
const findings = data.findings || [];
const findingsOf = new Map();
const RANK = { error: 0, warning: 1, info: 2 };
for (const finding of findings) {
  if (finding.at < 0) continue;
  if (!findingsOf.has(finding.at)) findingsOf.set(finding.at, []);
  findingsOf.get(finding.at).push(finding);
}
// The worst finding of each box and of the groups around it.
const marks = new Map();
for (const [layer, list] of findingsOf) {
  const worst = list.reduce((a, b) => (RANK[b.severity] < RANK[a.severity] ? b : a)).severity;
  for (let box = layers[layer].b; box > 0; box = boxes[box].parent)
    if (!marks.has(box) || RANK[worst] < RANK[marks.get(box)]) marks.set(box, worst);
}
const consumers = tensors.map(() => []);
layers.forEach((layer, index) => {
  for (const tensor of layer.in || []) if (tensor >= 0) consumers[tensor].push(index);
});
