// The page of `fusec explain --html`: the JSON of all targets and a script that shows it. Everything is inside the one
// file; names of the model are set as text and never as markup.
#include "Driver/Explain.h"

namespace fusec {

namespace {

constexpr std::string_view kHead = R"html(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>fusec explain</title>
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<style>
:root { --line: #d5d9e0; --soft: #f4f6f9; --text: #1d2430; --dim: #667085; --accent: #2456c9;
  --part: #b6c7f2; --old: #d0d5dd; }
* { box-sizing: border-box; }
body { margin: 0; font: 14px/1.45 system-ui, sans-serif; color: var(--text); height: 100vh;
  display: flex; flex-direction: column; }
header { display: flex; gap: 28px; align-items: center; padding: 10px 18px;
  border-bottom: 1px solid var(--line); flex-wrap: wrap; }
h1 { font-size: 17px; margin: 0; } h2 { font-size: 15px; margin: 18px 0 6px; }
h2:first-child { margin-top: 0; }
select, button { font: inherit; padding: 4px 10px; border: 1px solid var(--line);
  background: white; border-radius: 6px; cursor: pointer; }
button[aria-selected=true] { background: var(--accent); color: white; border-color: var(--accent); }
.sum { min-width: 170px; } .sum b { font-weight: 600; } .sum small { color: var(--dim); }
.bar { height: 6px; border-radius: 3px; background: var(--old); margin-top: 3px; }
.bar i { display: block; height: 6px; border-radius: 3px; background: var(--accent); }
main { flex: 1; display: grid; grid-template-columns: minmax(380px, 1.15fr) 1fr; min-height: 0; }
#left { overflow: auto; border-right: 1px solid var(--line); } #right { overflow: auto;
  padding: 16px 20px; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; color: var(--dim); position: sticky; top: 0;
  background: white; box-shadow: 0 1px 0 var(--line); white-space: nowrap; }
td, th { padding: 5px 10px; vertical-align: top; } td.n, th.n { text-align: right;
  white-space: nowrap; font-variant-numeric: tabular-nums; }
tr[tabindex] { cursor: pointer; } tr[tabindex]:hover { background: var(--soft); }
tr.on, tr.on:hover { background: #e4ebfb; }
td small, .dim { color: var(--dim); } .names { overflow-wrap: anywhere; }
.tag { display: inline-block; padding: 0 7px; border-radius: 9px; background: #e4ebfb;
  font-size: 12px; } .tag.shared { background: #fdeccd; } .tag.device, .tag.barrier,
.tag.counters { background: #fbd9d3; }
pre { background: var(--soft); padding: 10px; border-radius: 6px; overflow: auto; font-size: 12px; }
a { color: var(--accent); cursor: pointer; text-decoration: underline; }
svg text { font: 12px system-ui, sans-serif; pointer-events: none; }
svg rect { fill: white; stroke: #98a2b3; rx: 5; } svg g.on rect { fill: #e4ebfb;
  stroke: var(--accent); stroke-width: 2; } svg g { cursor: pointer; }
svg path { fill: none; stroke: #b8c0cc; stroke-width: 1.2; }
svg path.on { stroke: var(--accent); stroke-width: 2.2; }
#sizes { color: var(--dim); } p { margin: 4px 0; } p.between { margin-left: 16px; }
</style></head><body>
<header><h1 id="title"></h1><label>target <select id="target"></select></label>
<label id="plans">plan <select id="plan"></select></label>
<nav id="tabs"></nav><small id="sizes"></small>
<div id="sums" style="display:flex;gap:28px;flex-wrap:wrap"></div></header>
<main><section id="left"></section><section id="right"></section></main>
<script type="application/json" id="data">[)html";

constexpr std::string_view kScript = R"html(]</script>
<script>
'use strict';
const all = JSON.parse(document.getElementById('data').textContent);
const by = id => document.getElementById(id);
const views = {Kernels: kernelTable, Graph: graph, Compare: compare};
let x = all[0], t = x, tab = 'Kernels', on = 0;

function el(tag, props, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props || {}))
    if (k.startsWith('on')) e.addEventListener(k.slice(2), v); else e.setAttribute(k, v);
  for (const c of children.flat()) e.append(c);
  return e;
}
function svg(tag, props, ...children) {
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [k, v] of Object.entries(props || {}))
    if (k.startsWith('on')) e.addEventListener(k.slice(2), v); else e.setAttribute(k, v);
  e.append(...children);
  return e;
}
function scaled(value, units) {
  for (const [size, unit] of units)
    if (value >= size * 0.9995 || unit === units[units.length - 1][1])
      return +(value / size).toPrecision(3) + ' ' + unit;
}
const bytes = v => scaled(v, [[1e9, 'GB'], [1e6, 'MB'], [1e3, 'KB'], [1, 'B']]);
const time = v => scaled(v, [[1, 's'], [1e-3, 'ms'], [1e-6, 'us'], [1e-9, 'ns']]);
const moved = k => k.bytes_read + k.bytes_written;
const title = k => k.nodes.length ? k.nodes.join(', ') : k.equations.join(', ');
const short = (s, n) => s.length > n ? s.slice(0, n - 1) + '\u2026' : s;

function sum(label, of, text) {
  const now = of(t.totals), before = of(t.unfused), apiece = t.uncomposed && of(t.uncomposed);
  const other = t.for_all_sizes ? ', by the plan for all sizes ' + text(of(t.for_all_sizes)) : '';
  return el('div', {class: 'sum'}, el('b', {}, text(now)), ' ' + label + ' ',
    el('small', {title: 'every equation a kernel; uncomposed: before maps are written into them'},
       'unfused ' + text(before) + (t.uncomposed ? ', uncomposed ' + text(apiece) : '') + other),
    el('div', {class: 'bar'},
       el('i', {style: 'width:' + Math.min(100, before ? 100 * now / before : 100) + '%'})));
}
function row(i, ...cells) {
  const pick = () => select(i);
  return el('tr', {tabindex: 0, 'data-kernel': i, onclick: pick,
                   onkeydown: e => { if (e.key === 'Enter') pick(); }}, cells);
}
const cell = (text, number) => el('td', number ? {class: 'n'} : {class: 'names'}, text);
const heads = list => el('thead', {}, el('tr', {}, list.map(
  ([name, number]) => el('th', number ? {class: 'n'} : {}, name))));

function kernelTable() {
  return el('table', {id: 'kernels'},
    heads([['', 1], ['ONNX nodes'], ['time', 1], ['read', 1], ['written', 1]]),
    el('tbody', {}, t.kernels.map((k, i) => row(i, cell(i + 1, 1),
      el('td', {class: 'names'}, short(title(k), 160), el('br'),
         el('small', {}, k.name + (k.within ? ', in ' + k.within : ''))),
      cell(time(k.predicted_s), 1), cell(bytes(k.bytes_read), 1),
      cell(bytes(k.bytes_written), 1)))));
}

/* A kernel stands one row below the lowest of those that it reads from. */
function graph() {
  const depth = t.kernels.map(() => 0), width = 190, height = 66;
  const edges = t.apart.filter(a => a.from !== null && a.to !== null);
  const into = t.kernels.map(() => []);
  edges.forEach(e => into[e.to].push(e.from));
  t.kernels.forEach((k, i) => into[i].forEach(f => {
    if (f < i) depth[i] = Math.max(depth[i], depth[f] + 1);
  }));
  const used = [], at = depth.map(d => { used[d] = (used[d] || 0) + 1; return used[d] - 1; });
  const x = i => 20 + at[i] * (width + 18), y = i => 16 + depth[i] * height;
  const widest = Math.max(1, ...used.map(u => u || 0));
  const s = svg('svg', {id: 'graph', width: 80 + widest * (width + 18),
                        height: 32 + used.length * height});
  edges.forEach(e => {
    const rows = depth[e.to] - depth[e.from], skips = rows > 1; // then it goes around the boxes
    const side = skips ? width : width / 2, bend = skips ? 16 + 3 * Math.min(rows, 20) : 0;
    const x1 = x(e.from) + side, y1 = y(e.from) + (skips ? 26 : 40), down = skips ? 0 : 26;
    const x2 = x(e.to) + side, y2 = y(e.to) + (skips ? 14 : 0);
    s.append(svg('path', {'data-from': e.from, 'data-to': e.to,
      d: `M${x1} ${y1} C${x1 + bend} ${y1 + down} ${x2 + bend} ${y2 - down} ${x2} ${y2}`}));
  });
  t.kernels.forEach((k, i) => {
    const box = svg('text', {x: x(i) + 9, y: y(i) + 17}), sub =
      svg('text', {x: x(i) + 9, y: y(i) + 32, fill: '#667085'});
    box.textContent = (i + 1) + '. ' + short(title(k), 21);
    sub.textContent = time(k.predicted_s) + ', ' + bytes(moved(k));
    s.append(svg('g', {'data-kernel': i, onclick: () => select(i)},
      svg('rect', {x: x(i), y: y(i), width, height: 40}), box, sub));
  });
  return s;
}

function compare() {
  const fused = t.kernels.map((k, i) => [k, i]).filter(([k]) => k.unfused.launches > 1);
  const saved = ([k]) => moved(k.unfused) - moved(k);
  fused.sort((a, b) => saved(b) - saved(a));
  const total = el('tr', {}, cell('', 1), el('td', {}, el('b', {}, 'all kernels')),
    cell(t.unfused.launches + ' \u2192 ' + t.totals.launches, 1),
    cell(bytes(moved(t.unfused)) + ' \u2192 ' + bytes(moved(t.totals)), 1),
    cell(time(t.unfused.predicted_s) + ' \u2192 ' + time(t.totals.predicted_s), 1));
  return el('table', {id: 'compare'},
    heads([['', 1], ['ONNX nodes'], ['kernels', 1], ['bytes', 1], ['time', 1]]),
    el('tbody', {}, total, fused.map(([k, i]) => row(i, cell(i + 1, 1),
      cell(short(title(k), 120)), cell(k.unfused.launches + ' \u2192 1', 1),
      cell(bytes(moved(k.unfused)) + ' \u2192 ' + bytes(moved(k)), 1),
      cell(time(k.unfused.predicted_s) + ' \u2192 ' + time(k.predicted_s), 1)))));
}

function names(label, list) {
  return el('p', {class: 'names'}, el('span', {class: 'dim'}, label + ' '),
            list.join(', ') || 'none');
}
function values(label, list, end) {
  if (!list.length) return [];
  const kernels = [...new Set(list.map(a => a[end]))];
  const node = (item, nodes) => item + (nodes.length ? ' (' + nodes.join(', ') + ')' : '');
  return [el('h2', {}, label), ...kernels.flatMap(k => {
    const own = list.filter(a => a[end] === k), count = own[0].tensors;
    const other = k === null ? el('span', {}, 'the host')
      : el('a', {onclick: () => select(k)}, 'kernel ' + (k + 1) + ', ' + own[0][end + '_kernel']);
    return [el('p', {class: 'names'}, count + (count === 1 ? ' tensor ' : ' tensors ') + end + ' ',
               other), ...own.map(a => el('p', {class: 'names between'}, a.tensor + ' from ' +
      node(a.producer, a.producer_nodes) + ' to ' + node(a.consumer, a.consumer_nodes), el('br'),
      el('span', {class: 'dim'}, 'apart: ' + a.reason)))];
  })];
}
function considered(label, list) {
  const tried = [...list].sort((a, b) => a.predicted_s - b.predicted_s);
  if (!tried.length) return [];
  return [el('h2', {}, label), el('table', {}, el('tbody', {},
    tried.map(c => el('tr', {}, cell(c.name + (c.chosen ? ' (chosen)' : '')),
                      cell(time(c.predicted_s), 1)))))];
}
function phases(k) {
  const starts = [0, ...k.phase_starts];
  return starts.map((from, n) =>
    names(starts.length > 1 ? 'equations of phase ' + (n + 1) : 'equations',
          k.equations.slice(from, starts[n + 1])));
}
function asked(m) {
  const sectors = m.read_sectors + m.write_sectors, size = 32;
  return 'its instructions ask for ' + bytes(m.read_bytes) + ' and ' + bytes(m.write_bytes) +
    (sectors ? ', in sectors of 32 bytes ' + (m.from_data ? 'about ' : '') +
       bytes(size * m.read_sectors) + ' and ' + bytes(size * m.write_sectors) : '') +
    (m.shared_bytes ? ', and for ' + bytes(m.shared_bytes) + ' of shared memory' : '');
}
function barriers(b) {
  return [[b.of_block, 'of a block'], [b.of_device, 'of all blocks'], [b.counters, 'by counters']]
    .filter(([count]) => count).map(part => part.join(' ')).join(', ');
}
function details(k, i) {
  const u = k.unfused;
  const part = el('div', {}, el('h2', {}, 'Kernel ' + (i + 1) + ': ' + k.name),
    el('p', {}, time(k.predicted_s) + ', ' + bytes(k.bytes_read) + ' read, ' +
       bytes(k.bytes_written) + ' written' +
       (k.launches > 1 ? '; ' + k.launches + ' launches run this code' : '')),
    el('p', {class: 'dim'}, asked(k.moved)),
    u.launches > 1 ? el('p', {class: 'dim'}, 'unfused: ' + u.launches + ' kernels, ' +
      time(u.predicted_s) + ', ' + bytes(u.bytes_read) + ' read, ' + bytes(u.bytes_written) +
      ' written') : '',
    names('ONNX nodes', k.nodes), ...phases(k),
    barriers(k.barriers) ? names('barriers', [barriers(k.barriers)]) : '',
    k.each_step ? el('p', {}, bytes(k.each_step.constant_bytes) + ' of constants again in each of ' +
      k.each_step.steps + ' steps, from ' + k.each_step.from.map(f => f.level).join(', ') +
      (k.each_step.held_bytes ? '; ' + bytes(k.each_step.held_bytes) + ' more stay on chip' : '')) : '',
    k.within ? names('inside', [k.within]) : '',
    names('inputs', k.inputs), names('outputs', k.outputs));
  if (k.edges.length)
    part.append(el('h2', {}, 'Values that stay inside'), ...[...new Set(k.edges.map(e => e.level))]
      .map(level => el('p', {class: 'dim'}, level + ': ' + t.levels[level])), ...k.edges.map(e =>
      el('p', {class: 'names'}, el('span', {class: 'tag ' + e.level}, e.level), ' ' + e.tensor,
         el('span', {class: 'dim'}, ' from ' + e.producer + ' to ' + e.consumer))));
  if (k.held.length)
    part.append(el('h2', {}, 'Read once, held in registers for a later phase'), ...k.held.map(h =>
      el('p', {class: 'names'}, h.tensor,
         el('span', {class: 'dim'}, ' read by ' + h.first + ', again by ' + h.again))));
  part.append(...values('Values from other kernels', t.apart.filter(a => a.to === i), 'from'),
              ...values('Values for other kernels', t.apart.filter(a => a.from === i), 'to'));
  k.schedules.forEach((s, v) => part.append(
    el('h2', {}, 'Schedule' + (k.schedules.length > 1 ? ', variant ' + (v + 1) : '') +
       (k.guards[v] ? ', where ' + k.guards[v] : '')),
    el('pre', {}, s.join('\n'))));
  part.append(...considered('Schedules considered', k.considered),
              ...k.considered_of_phases.flatMap((list, p) => considered('Schedules considered ' +
                'for phase ' + (p + 1) + ', as a kernel of its own', list)));
  return part;
}

function select(i) {
  on = i;
  document.querySelectorAll('[data-kernel]').forEach(e =>
    e.classList.toggle('on', +e.dataset.kernel === i));
  document.querySelectorAll('path').forEach(e =>
    e.classList.toggle('on', +e.dataset.from === i || +e.dataset.to === i));
  by('right').replaceChildren(t.kernels.length ? details(t.kernels[i], i) : 'no kernels');
}
function show() {
  by('title').textContent = t.model + (t.graph ? ' (graph ' + t.graph + ')' : '');
  const wanted = Object.entries(t.without_size);
  const machine = t.cores_assumed ?
    'for ' + t.cores_assumed + ' cores of together ' + Math.round(t.flops_per_s / 1e9) + ' Gflop/s. ' : '';
  by('sizes').textContent = machine +
    Object.entries(t.symbols).map(([s, n]) => s + ' = ' + n).join(', ') +
    (wanted.length ? '; to favour sizes of yours, give' +
       wanted.map(([s, range]) => " --dim '" + s + '=' + range + ":SIZE'").join('') : '');
  by('tabs').replaceChildren(...Object.keys(views).flatMap(name =>
    [el('button', {'aria-selected': name === tab, id: 'tab-' + name,
                   onclick: () => { tab = name; show(); }}, name), ' ']));
  by('sums').replaceChildren(
    sum('kernels', s => s.launches, v => v), sum('predicted', s => s.predicted_s, time),
    sum('moved', moved, bytes));
  by('left').replaceChildren(views[tab]());
  select(Math.min(on, Math.max(0, t.kernels.length - 1)));
}
/* What a target tells of one of its plans stands in the place of what it tells of the first. */
const plans = () => [x, ...(x.other_plans || [])];
function pick(plan) {
  t = plan ? {...x, uncomposed: null, ...plans()[plan]} : x;
  on = 0;
  show();
}
function load(target) {
  x = all[target];
  by('plan').replaceChildren(...plans().map((p, i) =>
    el('option', {value: i}, p.where ? 'where ' + p.where : 'for all sizes')));
  by('plans').hidden = plans().length < 2;
  pick(0);
}
all.forEach((one, i) => by('target').append(el('option', {value: i}, one.target)));
by('target').addEventListener('change', e => load(+e.target.value));
by('plan').addEventListener('change', e => pick(+e.target.value));
load(0);
</script></body></html>
)html";

} // namespace

std::string explanationHtml(const std::vector<ExplainedTarget> &targets) {
  std::string out(kHead);
  for (char c : explanationJson(targets)) {
    // Inside of a script element "</script>" and "<!--" would end or change it.
    if (c == '<')
      out += "\\u003c";
    else if (c == '\n')
      out += ",\n";
    else
      out += c;
  }
  if (!targets.empty())
    out.erase(out.size() - 2); // behind the last target
  return out.append(kScript);
}

} // namespace fusec
