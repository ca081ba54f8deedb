'use strict';

// The page's controls and texts, built once, and set anew whenever something is chosen; and its beginning. Here nothing is
// computed.

const SHOWS = { difference: 'Difference', pair: 'A and B', a: 'A', b: 'B' };
const ORDERS = { calls: 'Calls', callers: 'Bottom-up' };
const WIDTHS = { both: 'Greater of both', a: 'A', b: 'B' };
const KEYS = [
  ['← ↑ ↓ →', 'move between calls, in a graph that has the focus'],
  ['Enter', 'zoom to the call'],
  ['Backspace', 'zoom out a step'],
  ['Escape', 'zoom out to everything, or leave callers, or empty the search'],
  ['c', 'callers of the function, and what it calls'],
  ['/', 'search'],
  ['Shift + click on a kind', 'show that kind alone, and all again'],
];

const controls = {
  a: chooser('A', data.variants, (a) => choose({ a })),
  b: chooser('B', data.variants, (b) => choose({ b })),
  grove: chooser('Profile', data.groves.map(groveName), (grove) => choose({ grove, about: EVERYTHING })),
  view: switcher('Show', SHOWS, (view) => choose({ view })),
  order: switcher('Order', ORDERS, (order) => choose({ order, about: EVERYTHING })),
  width: switcher('Width', WIDTHS, (width) => choose({ width })),
};
const swap = element('button', { type: 'button', text: '⇄', 'aria-label': 'Swap A and B', title: 'Swap A and B' });
swap.addEventListener('click', () => choose({ a: state.b, b: state.a }));
const leave = element('button', { type: 'button', class: 'leave', on: { click: () => showAbout(EVERYTHING) } });
const finder = element('input', {
  type: 'search',
  placeholder: 'Search functions, files, packages  ( / )',
  'aria-label': 'Search functions, files and packages',
  spellcheck: 'false',
  autocomplete: 'off',
});
const kindButtons = data.kinds.map((name, kind) => kindButton(name, kind));

function groveName({ service, measure }) {
  const isOnly = data.groves.every((grove) => grove.service === service);
  return isOnly || service === '' ? measure : `${service}, ${measure}`;
}

function kindButton(name, kind) {
  const figures = element('span', { class: 'figures' });
  const emphasise = (emphasis) => () => {
    state.emphasis = emphasis;
    shown.sections.forEach((section) => section.redraw());
  };
  const on = { click: (event) => toggleKind(kind, event.shiftKey) };
  Object.assign(on, { pointerenter: emphasise(kind), pointerleave: emphasise(-1) });
  const button = element('button', { type: 'button', class: 'kind', on }, element('i', { class: `swatch kind-${kind}` }));
  button.append(name, figures);
  return { button, figures };
}

/** Leaves a kind's own time out, or counts it again; alone, it is the only one that counts. */
function toggleKind(kind, alone) {
  const others = data.kinds.map((_, other) => other).filter((other) => other !== kind);
  const isAlone = !state.hidden.has(kind) && others.every((other) => state.hidden.has(other));
  const hidden = new Set(state.hidden);
  state.emphasis = -1;
  if (alone) return choose({ hidden: new Set(isAlone ? [] : others) });
  if (!hidden.delete(kind)) hidden.add(kind);
  return choose({ hidden });
}

function drawControls() {
  controls.a.set(state.a);
  controls.b.set(state.b);
  controls.grove.set(state.grove);
  controls.view.set(state.view);
  controls.order.set(state.about === EVERYTHING ? state.order : '');
  controls.width.set(state.width);
  controls.view.host.hidden = !compares();
  controls.width.host.hidden = !compares() || state.view !== 'difference';
  controls.grove.host.hidden = data.groves.length < 2;
  [controls.a.host, controls.b.host, swap].forEach((host) => (host.hidden = !compares()));
  leave.hidden = state.about === EVERYTHING;
  leave.textContent = state.about === EVERYTHING ? '' : `✕ ${frames[state.about].name}`;
  leave.setAttribute('aria-label', state.about === EVERYTHING ? '' : `Leave ${frames[state.about].name}`);
  byId('key').replaceChildren(...keyElements());
}

/** What colours and widths mean. */
function keyElements() {
  const { unit } = shown.grove;
  if (!compares() || state.view !== 'difference') {
    return [`Width: ${unit}, with what a call calls in turn. Colour: whose code it is.`];
  }
  const parts = [-1, -0.4, 0, 0.4, 1].map((part) => {
    const box = element('i', { class: 'swatch' });
    box.style.background = colours.changes[SHADES + Math.round(part * SHADES)].fill;
    return box;
  });
  const widths = { both: 'the greater of A and B', a: 'A', b: 'B' };
  const meant = `Width: ${unit} in ${widths[state.width]}. Hatched, with −: gone in B. Framed, with +: new in B. Edge: whose code it is.`;
  return ['less in B ', ...parts, ' more in B. ', meant];
}

function drawAnswer() {
  const { grove, tree, a, b } = shown;
  const left = [...state.hidden].filter((kind) => kindFigures(kind).some((value) => value > 0)).map((kind) => data.kinds[kind]);
  const without = left.length === 0 ? '' : `without ${left.join(', ')}`;
  const cards = [card(compares() ? 'A' : '', data.variants[state.a], tree.totalA[0], a)];
  if (compares()) {
    cards.push(card('B', data.variants[state.b], tree.totalB[0], b));
    const change = tree.totalB[0] - tree.totalA[0];
    const ratio = tree.totalA[0] > 0 ? `${change < 0 ? '−' : '+'}${percent(Math.abs(change), tree.totalA[0])}` : '';
    cards.push(element('div', { class: 'card' }, element('h3', { text: 'B − A' }), figure(signed(change), grove.unit), small(ratio)));
  }
  const notes = without === '' ? [] : [element('p', { class: 'faint', text: `Figures are ${without}.` })];
  byId('answer').replaceChildren(element('div', { class: 'cards' }, ...cards), ...saidElements(), ...notes);
}

function card(side, name, total, member) {
  const { unit } = shown.grove;
  const facts = [];
  if (member === null) facts.push('no profile of this service');
  if (member?.cpu) facts.push(`by the kernel ${amount(member.cpu[0])} (${amount(member.cpu[1])} to ${amount(member.cpu[2])})`);
  if (member?.requests > 0) facts.push(`${count(member.requests)} requests`);
  const heading = element('h3', {}, side === '' ? '' : element('b', { text: side }), name);
  return element('div', { class: 'card' }, heading, figure(amount(total), unit), small(facts.join('; ')));
}

function figure(text, unit) {
  return element('p', { class: 'large' }, text, element('span', { text: unit }));
}

function small(text) {
  return element('p', { class: 'faint', text });
}

/** What the explanation says of these two variants. */
function saidElements() {
  const [a, b] = [data.variants[state.a], data.variants[state.b]];
  const about = data.comparisons.find((one) => one.baseline === a && one.variant === b);
  const turned = data.comparisons.find((one) => one.baseline === b && one.variant === a);
  const said = about ?? turned;
  if (!said) return [];
  const from = about ? '' : `${said.variant} against ${said.baseline}: `;
  return said.said.map((text, index) => element('p', { class: index === 0 ? 'said first' : 'said', text: from + text }));
}

function kindFigures(kind) {
  const { a, b } = shown.kinds[kind];
  return compares() ? [a, b] : [a];
}

function drawKinds() {
  const bars = compares() ? [bar('A', 'a'), bar('B', 'b')] : [bar('', 'a')];
  const seen = kindButtons.filter((_, kind) => kindFigures(kind).some((value) => value > 0));
  kindButtons.forEach(({ button, figures }, kind) => {
    figures.textContent = kindFigures(kind).map(amount).join(' → ');
    button.setAttribute('aria-pressed', String(!state.hidden.has(kind)));
  });
  const chips = element('div', { class: 'kinds', role: 'group', 'aria-label': 'Kinds whose time counts' });
  chips.append(...seen.map(({ button }) => button));
  byId('kinds').replaceChildren(...bars, chips);
}

/** A variant's time by kind, at the scale of the greater one. */
function bar(side, column) {
  const counts = shown.kinds.map((row, kind) => (state.hidden.has(kind) ? { a: 0, b: 0 } : row));
  const sum = (name) => counts.reduce((all, row) => all + row[name], 0);
  const full = Math.max(sum('a'), sum('b')) || 1;
  const parts = counts.map((row, kind) => {
    const part = element('i', { class: `part kind-${kind}`, title: `${data.kinds[kind]}: ${amount(row[column])}` });
    part.style.width = `${(row[column] / full) * 100}%`;
    return part;
  });
  return element('div', { class: 'bar', 'aria-hidden': 'true' }, side === '' ? '' : element('b', { text: side }), element('div', {}, ...parts));
}

function drawNotes() {
  const { grove } = shown;
  const percentage = (grove.share * 100).toPrecision(2);
  const cut = `${count(grove.smaller)} call paths below ${percentage} % of the time of each variant are summed up as “(smaller)”, so that this page stays small.`;
  const doubts = data.doubts.map(([evidence, remedy]) => element('li', {}, evidence, element('span', { class: 'faint', text: ` ${remedy}` })));
  const keys = KEYS.map(([key, does]) => element('li', {}, element('kbd', { text: key }), ` ${does}`));
  const parts = [
    doubts.length === 0 ? null : element('h2', { text: 'What makes this doubtful' }),
    doubts.length === 0 ? null : element('ul', {}, ...doubts),
    element('h2', { text: 'About this page' }),
    element('p', { text: grove.smaller > 0 ? cut : 'Every call path of the profiles is in this page.' }),
    element('p', { text: 'It is one file that loads nothing. Bottom-up, callers through which less than 0.02 % comes are not drawn one by one.' }),
    element('ul', { class: 'keys' }, ...keys),
  ];
  byId('notes').replaceChildren(...parts.filter((part) => part !== null));
}

function listen() {
  finder.addEventListener('input', () => {
    state.search = finder.value;
    search();
  });
  finder.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') Object.assign(finder, { value: '' }).dispatchEvent(new Event('input'));
    if (event.key === 'Escape' || event.key === 'Enter') shown.sections[0].charts[0].host.focus({ preventScroll: true });
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.target === finder || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    finder.focus();
    finder.select();
  });
  const redraw = () => shown.sections.forEach((section) => section.redraw());
  const recolour = () => {
    colours = palette();
    byId('key').replaceChildren(...keyElements());
    redraw();
  };
  addEventListener('scroll', redraw, { passive: true });
  addEventListener('resize', redraw);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', recolour);
  // Paper is light, and has the whole graph.
  addEventListener('beforeprint', () => {
    document.documentElement.dataset.print = '';
    recolour();
  });
  addEventListener('afterprint', () => {
    delete document.documentElement.dataset.print;
    recolour();
  });
}

byId('choice').append(controls.a.host, swap, controls.b.host, controls.grove.host);
byId('tools').append(controls.view.host, controls.order.host, controls.width.host, finder, byId('result'), leave);
listen();
if (data.groves.length > 0) draw();
else byId('answer').append(element('p', { class: 'notice', text: 'There is no profile in this explanation.' }));
