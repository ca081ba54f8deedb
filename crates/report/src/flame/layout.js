'use strict';

// Where the nodes of a tree stand, which of them is at a point, and how figures are written. Pure: it must not touch the page.

/**
 * Places for all nodes that have time: `x`, as `total` in the tree's unit, and `depth`. `rows` has the nodes of each depth from
 * left to right.
 */
function layout(tree, total) {
  const x = new Float64Array(tree.size);
  const depth = new Int32Array(tree.size);
  const rows = [];
  const { start, list } = tree.calls;
  const open = [0];
  while (open.length > 0) {
    const node = open.pop();
    (rows[depth[node]] ??= []).push(node);
    let at = x[node];
    for (let index = start[node]; index < start[node + 1]; index += 1) {
      const called = list[index];
      x[called] = at;
      depth[called] = depth[node] + 1;
      at += total[called];
    }
    for (let index = start[node + 1] - 1; index >= start[node]; index -= 1) {
      if (total[list[index]] > 0) open.push(list[index]);
    }
  }
  return { x, depth, total, rows };
}

/** Index in a row of the last node that begins at or before `value`; −1 where there is none. */
function lastBefore(row, x, value) {
  let [low, high] = [0, row.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[row[middle]] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The node at a depth and a distance from the left, in the tree's unit; −1 where there is none. */
function nodeAt(plan, depth, value) {
  const row = plan.rows[depth];
  if (!row) return -1;
  const node = row[lastBefore(row, plan.x, value)];
  return node !== undefined && value < plan.x[node] + plan.total[node] ? node : -1;
}

/** What is seen: from `left` to `right` of the plan, at a scale at which `span` fills the width. */
function viewOf(plan, node, span) {
  const left = plan.x[node];
  return { left, right: left + plan.total[node], span: Math.max(span, plan.total[node], Number.MIN_VALUE) };
}

/**
 * The node that an arrow key leads to, or the same: `up` to the caller, `down` to the heaviest call, `left` and `right` along
 * the row. What is narrower than `least` or out of view is passed over.
 */
function neighbour(tree, plan, view, node, direction, least) {
  const fits = (other) => plan.total[other] >= least && inView(plan, view, other);
  if (direction === 'up') return node > 0 ? tree.parent[node] : node;
  if (direction === 'down') {
    const { start, list } = tree.calls;
    const calls = Array.from(list.subarray(start[node], start[node + 1])).filter(fits);
    return calls.reduce((best, other) => (plan.total[other] > plan.total[best] ? other : best), calls[0] ?? node);
  }
  const row = plan.rows[plan.depth[node]];
  const step = direction === 'left' ? -1 : 1;
  let index = lastBefore(row, plan.x, plan.x[node]) + step;
  while (index >= 0 && index < row.length && !fits(row[index])) index += step;
  return row[index] ?? node;
}

function inView(plan, view, node) {
  return plan.x[node] < view.right && plan.x[node] + plan.total[node] > view.left;
}

/** Round values from 0 to `span`, at most `count` and two of them at least. */
function ticks(span, count) {
  if (!(span > 0) || count < 1) return [];
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9));
  const values = [];
  for (let index = 0; index * step <= span * (1 + 1e-9); index += 1) values.push(index * step);
  return values;
}

/** A whole number, thousands set apart. */
function count(value) {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ',');
}

/** A round value on the ruler, without the digits that only computing made. */
function mark(value) {
  return value >= 1000 ? count(value) : String(Number(value.toPrecision(6)));
}

/** A figure with the digits that it deserves. */
function amount(value) {
  const size = Math.abs(value);
  if (size >= 99.95 || size === 0) return count(value);
  return value.toFixed(size >= 9.995 ? 1 : 2);
}

/** A difference: with its sign, and none where nothing is left of it after rounding. */
function signed(value) {
  const text = amount(Math.abs(value));
  if (Number(text.replaceAll(',', '')) === 0) return '0';
  return (value < 0 ? '−' : '+') + text;
}

/** A part of a whole in percent. */
function percent(part, whole) {
  if (!(whole > 0)) return '–';
  const value = (part / whole) * 100;
  return `${value.toFixed(value >= 9.95 || value === 0 ? 0 : 1)} %`;
}

if (typeof module !== 'undefined') {
  module.exports = { amount, count, layout, mark, neighbour, nodeAt, percent, signed, ticks, viewOf };
}
