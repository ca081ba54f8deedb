'use strict';

// What is told of a node: beside the pointer, to a screen reader, and on the way down to it. Names go in as text only.

const PATH_FIRST = 2;
const PATH_LAST = 4;

function nameOf(tree, node) {
  return frames[tree.frame[node]]?.name ?? 'everything';
}

/** The two variants' figures of a node; only the first where one is all there is. */
function sidesOf(tree, node) {
  const { totalA, totalB } = shown.tree; // all that there is, also where the tree is about one function
  const sides = [{ side: 'A', name: data.variants[state.a], total: tree.totalA, own: tree.a, all: totalA[0] }];
  if (compares()) sides.push({ side: 'B', name: data.variants[state.b], total: tree.totalB, own: tree.b, all: totalB[0] });
  return sides.map((side) => ({ ...side, total: side.total[node], own: side.own[node] }));
}

/** What became of a node from A to B, where it is only in one. */
function fateOf(tree, node) {
  if (!compares()) return '';
  const [a, b] = [tree.totalA[node], tree.totalB[node]];
  if (a > 0 && b <= 0) return 'Gone in B.';
  return b > 0 && a <= 0 ? 'New in B.' : '';
}

/** In one sentence, for those who cannot see the graph. */
function saidOf(tree, node) {
  const { unit } = shown.grove;
  const frame = frames[tree.frame[node]];
  const what = frame ? [frame.name, frame.kindName, frame.pack, frame.where].filter((part) => part !== '') : ['everything'];
  const sides = sidesOf(tree, node).map(({ side, total, own, all }) => {
    const of = compares() ? `${side}: ` : '';
    return `${of}${amount(total)} ${unit}, ${percent(total, all)}, itself ${amount(own)}`;
  });
  if (compares()) sides.push(`difference ${signed(tree.totalB[node] - tree.totalA[node])}`);
  const calls = tree.calls.start[node + 1] - tree.calls.start[node];
  return `${what.join(', ')}. ${sides.join('; ')}. ${fateOf(tree, node)} ${calls === 1 ? '1 call' : `${calls} calls`} below.`;
}

/** The elements of a node's hint. */
function hintOf(tree, node) {
  const frame = frames[tree.frame[node]];
  const rows = sidesOf(tree, node).map(({ side, name, total, own, all }) =>
    hintRow(compares() ? [side, name] : ['', name], [amount(total), percent(total, all), amount(own)]),
  );
  if (compares()) {
    const change = (a, b) => signed(b[node] - a[node]);
    rows.push(hintRow(['', 'difference'], [change(tree.totalA, tree.totalB), '', change(tree.a, tree.b)]));
  }
  const heads = ['', 'total', '', 'itself'].map((text) => element('th', { text, scope: 'col' }));
  const facts = frame ? [frame.where, frame.pack].filter((part) => part !== '') : [];
  const kind = frame ? element('p', {}, element('i', { class: `swatch kind-${frame.kind}` }), frame.kindName) : null;
  const parts = [
    element('b', { text: nameOf(tree, node) }),
    ...facts.map((text) => element('p', { class: 'where', text })),
    kind,
    element('table', {}, element('tr', {}, ...heads), ...rows),
    element('p', { class: 'faint', text: `${shown.grove.unit}. ${fateOf(tree, node)}`.trim() }),
    ...linesOf(tree.frame[node]),
  ];
  return parts.filter((part) => part !== null);
}

function hintRow([side, name], cells) {
  const head = element('th', { scope: 'row' }, side === '' ? '' : element('b', { text: `${side} ` }), name);
  return element('tr', {}, head, ...cells.map((text) => element('td', { text })));
}

/** The most expensive lines of a function, from wherever it was called. */
function linesOf(frame) {
  const sides = [['A', shown.a], ['B', shown.b]].filter(([, member]) => member !== null);
  return sides.flatMap(([side, member]) => {
    const lines = member.lines.filter(([own]) => own === frame).map(([, line, own]) => `line ${line}: ${amount(own)}`);
    const of = compares() ? ` in ${side}` : '';
    return lines.length === 0 ? [] : [element('p', { class: 'faint', text: `Function's own time${of} by ${lines.join(', ')}` })];
  });
}

/** The way from everything to a node, as buttons that zoom; its middle is left out where it is long. */
function pathElements(tree, node, zoom) {
  const path = pathTo(tree, node);
  const isLong = path.length > PATH_FIRST + PATH_LAST + 1;
  const seen = isLong ? [...path.slice(0, PATH_FIRST), -1, ...path.slice(-PATH_LAST)] : path;
  const hidden = path.length - PATH_FIRST - PATH_LAST;
  const entries = seen.map((one, index) => {
    if (one < 0) return element('li', { class: 'faint', text: `… ${hidden} callers …` });
    const current = index === seen.length - 1 ? 'true' : null;
    const button = element('button', { type: 'button', text: nameOf(tree, one), 'aria-current': current });
    button.addEventListener('click', () => zoom(one));
    return element('li', {}, button);
  });
  return [element('ol', {}, ...entries)];
}
