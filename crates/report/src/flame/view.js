'use strict';

// The page itself: what is chosen, and everything drawn anew from the data whenever a choice changes. Figures come from model.js,
// places from layout.js; here nothing is computed.

const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);
const frames = data.frames.map(([name, file, line, kind, pack]) => {
  const where = file !== '' && line > 0 ? `${file}:${line}` : file;
  return { name, where, kind, pack, kindName: data.kinds[kind] };
});
const texts = frames.map(({ name, where, pack, kindName }) => `${name} ${where} ${pack} ${kindName}`.toLowerCase());
const SMALLEST = 0.0002; // callers through which less of everything comes are not shown one by one
const SHADES = 24;

const state = {
  ...firstPair(),
  grove: 0,
  view: 'difference',
  order: 'calls',
  width: 'both',
  hidden: new Set(data.kinds.flatMap((name, kind) => (name === 'waiting' ? [kind] : []))),
  emphasis: -1,
  search: '',
  about: EVERYTHING,
};
const compares = () => state.b >= 0;
const hint = new Hint(byId('hint'));
let shown = { sections: [] };
let colours = {};

/** The first comparison's variants, or the first two that there are. */
function firstPair() {
  const first = data.comparisons[0];
  const [a, b] = first ? [first.baseline, first.variant].map((name) => data.variants.indexOf(name)) : [0, 1];
  const known = data.variants.length;
  return { a: a >= 0 ? a : 0, b: b >= 0 && b < known ? b : known > 1 ? 1 : -1 };
}

function memberOf(grove, variant) {
  return grove.members.find((member) => member.variant === variant) ?? null;
}

/** What the choices come to: trees, and sections of graphs of them. */
function computed() {
  const grove = data.groves[state.grove];
  const [a, b] = [memberOf(grove, state.a), memberOf(grove, state.b)];
  const whole = treeOfGrove(grove, a, b, () => true);
  const counts = (frame) => !state.hidden.has(frames[frame].kind);
  const tree = state.hidden.size > 0 ? treeOfGrove(grove, a, b, counts) : whole;
  const least = Math.max(tree.totalA[0], tree.totalB[0]) * SMALLEST;
  const { about } = state;
  const trees = [{ heading: null, tree: state.order === 'callers' ? bottomUp(tree, least) : tree }];
  if (about !== EVERYTHING) {
    const { name } = frames[about];
    trees.splice(0, 1, { heading: `Who calls ${name}`, tree: callersOf(tree, about, least) });
    trees.push({ heading: `What ${name} calls`, tree: calleesOf(tree, about) });
  }
  const kinds = byKind(whole, (frame) => frames[frame].kind, data.kinds.length);
  return { grove, a, b, tree, trees, kinds, rows: heavy(tree), intervals: intervalsOf(grove), matches: null };
}

/** Intervals of differences by function, where the explanation has them for these two and this service. */
function intervalsOf(grove) {
  const [a, b] = [data.variants[state.a], data.variants[state.b]];
  const isTime = grove.measure === 'CPU time';
  const found = data.comparisons.find((one) => one.baseline === a && one.variant === b);
  const turned = data.comparisons.find((one) => one.baseline === b && one.variant === a);
  const list = isTime ? (found ?? turned)?.functions ?? [] : [];
  return new Map(
    list.map(([frame, , low, high]) => [frame, found ? { low, high } : { low: -high, high: -low }]),
  );
}

/** The graphs of a tree: which totals are their widths, and whether colours tell the kind or the change. */
function graphsOf(tree) {
  const [a, b] = [data.variants[state.a], data.variants[state.b]];
  const kinds = [
    { label: a, side: 'A', total: tree.totalA },
    { label: b, side: 'B', total: tree.totalB },
  ];
  if (!compares()) return [{ ...kinds[0], side: '' }];
  const widths = { both: tree.totalBoth, a: tree.totalA, b: tree.totalB };
  const view = {
    difference: [{ label: 'difference', side: '', total: widths[state.width], isChange: true }],
    pair: kinds,
    a: [kinds[0]],
    b: [kinds[1]],
  };
  return view[state.view];
}

function draw() {
  const hadFocus = byId('graphs').contains(document.activeElement);
  shown.sections.forEach((section) => section.end());
  shown = computed();
  colours = palette();
  shown.sections = shown.trees.map(({ heading, tree }) => new Section(heading, tree, graphsOf(tree)));
  byId('graphs').replaceChildren(...shown.sections.map((section) => section.host));
  drawControls();
  drawAnswer();
  drawKinds();
  drawNotes();
  search();
  if (hadFocus) shown.sections[0].focus();
}

/** The colours as the style has them now; they differ between light, dark and paper. */
function palette() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  const [ink, chalk] = [value('--ink'), value('--chalk')];
  const withInk = (fill) => ({ fill, ink: contrast(fill, ink) >= contrast(fill, chalk) ? ink : chalk });
  const shade = (index) => withInk(mixed(value('--same'), value(index < 0 ? '--less' : '--more'), Math.abs(index) / SHADES));
  return {
    kinds: data.kinds.map((_, kind) => withInk(value(`--kind-${kind}`))),
    all: withInk(value('--same')),
    changes: Array.from({ length: 2 * SHADES + 1 }, (_, index) => shade(index - SHADES)),
    page: value('--page'),
    text: value('--text'),
    faint: value('--faint'),
  };
}

/** Marks what matches the search, in graphs and table, and says how much that is. */
function search() {
  const matches = matching(texts, state.search);
  shown.matches = matches;
  shown.sections.forEach((section) => section.redraw());
  const rows = shown.rows.filter((row) => matches === null || matches[row.frame] === 1);
  const full = (row) => ({ ...frames[row.frame], ...row, interval: shown.intervals.get(row.frame) ?? null });
  const whole = { a: shown.tree.totalA[0], b: shown.tree.totalB[0] };
  const all = shown.rows.length;
  table.show({ rows: rows.map(full), compares: compares(), whole, unit: shown.grove.unit, all });
  byId('result').textContent = matches === null ? '' : foundText(matched(shown.tree, matches), rows.length, whole);
}

function foundText(found, functions, whole) {
  const { unit } = shown.grove;
  if (functions === 0) return 'Nothing matches.';
  const part = (value, all) => `${amount(value)} ${unit}, ${percent(value, all)}`;
  const a = part(found.a, whole.a);
  const which = functions === 1 ? '1 function matches' : `${count(functions)} functions match`;
  const sides = compares() ? `${a} of A; ${part(found.b, whole.b)} of B; ${signed(found.b - found.a)} ${unit}` : a;
  return `${which}, with what they call: ${sides}.`;
}

/** Graphs of one tree, which zoom together. */
class Section {
  constructor(heading, tree, graphs) {
    Object.assign(this, { tree, zoomed: 0, most: changeMax(tree) });
    this.path = element('nav', { class: 'path', 'aria-label': 'Zoom' });
    this.host = element('section', {}, heading === null ? null : element('h3', { text: heading }), this.path);
    const span = Math.max(...graphs.map(({ total }) => total[0]));
    this.charts = graphs.map((graph) => this.chart(graph, span));
    this.drawPath();
  }

  chart({ label, side, total, isChange = false }, span) {
    const { tree } = this;
    const plan = layout(tree, total);
    const about = `Flame graph, ${side} ${label}: ${amount(total[0])} ${shown.grove.unit}. Arrow keys move, Enter zooms.`;
    const chart = new Chart({
      label: about,
      tree,
      plan,
      span,
      look: this.look(isChange),
      act: {
        zoom: (node) => this.zoom(node),
        out: () => this.zoom(this.wider()),
        reset: () => (this.zoomed === 0 && state.about !== EVERYTHING ? showAbout(EVERYTHING) : this.zoom(0)),
        about: (node) => showAbout(tree.frame[node]),
        hint: (node, x, y) => hint.show(x, y, hintOf(tree, node)),
        hintless: () => hint.hide(),
      },
    });
    if (!isChange && compares()) this.host.append(element('h4', { class: 'side' }, element('b', { text: side }), label));
    this.host.append(chart.host);
    return chart;
  }

  look(isChange) {
    const { tree } = this;
    const frameOf = (node) => frames[tree.frame[node]];
    const change = (node) => (this.most > 0 ? (tree.totalB[node] - tree.totalA[node]) / this.most : 0);
    const shade = (part) => SHADES + Math.round(Math.sign(part) * Math.sqrt(Math.abs(part)) * SHADES);
    const isGone = (node) => compares() && tree.totalA[node] > 0 && tree.totalB[node] <= 0;
    const isNew = (node) => compares() && tree.totalB[node] > 0 && tree.totalA[node] <= 0;
    const mark = (node) => (isChange ? (isGone(node) ? '− ' : isNew(node) ? '+ ' : '') : '');
    return {
      colour: (node) => {
        if (isChange) return colours.changes[shade(change(node))];
        return frameOf(node) ? colours.kinds[frameOf(node).kind] : colours.all;
      },
      stripe: (node) => (isChange && frameOf(node) ? colours.kinds[frameOf(node).kind].fill : null),
      isGone: (node) => isChange && isGone(node),
      isNew: (node) => isChange && isNew(node),
      isDim: (node) => isDim(tree.frame[node]),
      label: (node) => mark(node) + (frameOf(node)?.name ?? 'everything'),
      said: (node) => saidOf(tree, node),
      page: () => colours.page,
      text: () => colours.text,
      faint: () => colours.faint,
      unit: () => shown.grove.unit,
    };
  }

  span(node) {
    return Math.max(...this.charts.map((chart) => chart.plan.total[node]));
  }

  zoom(node) {
    this.zoomed = node;
    const span = this.span(node);
    this.charts.forEach((chart) => chart.zoom(node, span));
    this.drawPath();
    byId('spoken').textContent = `Zoomed to ${saidOf(this.tree, node)}`;
  }

  /** The nearest caller that has more time than what is seen now. */
  wider() {
    const now = this.span(this.zoomed) * 1.001;
    const callers = pathTo(this.tree, this.zoomed).reverse();
    return callers.find((node) => this.span(node) > now) ?? 0;
  }

  drawPath() {
    const zoom = (node) => {
      this.zoom(node);
      this.focus();
    };
    const hint = element('p', { class: 'faint', text: 'A click on a call zooms; arrow keys and Enter do too.' });
    this.path.replaceChildren(...(this.zoomed === 0 ? [hint] : pathElements(this.tree, this.zoomed, zoom)));
  }

  focus() {
    this.charts[0].host.focus({ preventScroll: true });
  }

  redraw() {
    this.charts.forEach((chart) => chart.draw());
  }

  end() {
    this.charts.forEach((chart) => chart.end());
  }
}

/** What does not match is dimmed; while the pointer is on a kind, all other kinds are. */
function isDim(frame) {
  if (frame === EVERYTHING) return shown.matches !== null || state.emphasis >= 0;
  if (state.emphasis >= 0) return frames[frame].kind !== state.emphasis;
  return shown.matches !== null && shown.matches[frame] !== 1;
}

function showAbout(frame) {
  state.about = frame;
  draw();
  byId('graphs-heading').scrollIntoView({ block: 'start' });
  const name = frame === EVERYTHING ? 'everything' : frames[frame].name;
  byId('spoken').textContent = `Showing ${name}`;
}

function choose(changes) {
  Object.assign(state, changes);
  draw();
}

const table = new FunctionTable(byId('functions'), showAbout);
