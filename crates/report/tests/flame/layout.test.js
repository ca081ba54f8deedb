'use strict';

// Where the flame page draws its nodes, and how it writes figures, without a browser.

const { describe, it } = require('node:test');
const assert = require('node:assert/strict');

const { treeOf } = require('../../src/flame/model.js');
const { amount, layout, mark, neighbour, nodeAt, percent, signed, ticks, viewOf } = require('../../src/flame/layout.js');
const { contrast, mixed } = require('../../src/flame/shade.js');

// everything ─┬─ 1 ─┬─ 3
//             │     └─ 4
//             └─ 2 ─── 5, which is gone in B
const tree = treeOf({
  frame: [-1, 10, 20, 30, 40, 50],
  parent: [-1, 0, 0, 1, 1, 2],
  a: [0, 10, 4, 20, 30, 6],
  b: [0, 10, 4, 25, 30, 0],
});
const plan = layout(tree, tree.totalA);

describe('a layout', () => {
  it('puts calls below their caller, side by side, the heaviest first', () => {
    assert.deepEqual(plan.rows, [[0], [1, 2], [4, 3, 5]]);
    assert.deepEqual([...plan.x], [0, 0, 60, 30, 0, 60]);
    for (const [node, caller] of tree.parent.entries()) {
      if (caller < 0) continue;
      assert.ok(plan.x[node] >= plan.x[caller]);
      assert.ok(plan.x[node] + plan.total[node] <= plan.x[caller] + plan.total[caller]);
      assert.equal(plan.depth[node], plan.depth[caller] + 1);
    }
  });

  it('has no place for what has no time', () => {
    assert.deepEqual(layout(tree, tree.totalB).rows, [[0], [1, 2], [4, 3]]);
    const empty = treeOf({ frame: [-1], parent: [-1], a: [0], b: [0] });
    assert.deepEqual(layout(empty, empty.totalA).rows, [[0]]);
  });

  it('finds the node at a point, and none beside them', () => {
    assert.equal(nodeAt(plan, 0, 69.9), 0);
    assert.equal(nodeAt(plan, 1, 59.9), 1);
    assert.equal(nodeAt(plan, 1, 60), 2);
    assert.equal(nodeAt(plan, 2, 51), -1);
    assert.equal(nodeAt(plan, 2, 65), 5);
    assert.equal(nodeAt(plan, 3, 1), -1);
    assert.equal(nodeAt(plan, 1, 70), -1);
  });
});

describe('arrow keys', () => {
  const whole = viewOf(plan, 0, 70);
  const step = (node, direction, view = whole, least = 0.1) => neighbour(tree, plan, view, node, direction, least);

  it('lead up, down to the heaviest call, and along the row', () => {
    assert.equal(step(0, 'up'), 0);
    assert.equal(step(4, 'up'), 1);
    assert.equal(step(0, 'down'), 1);
    assert.equal(step(1, 'down'), 4);
    assert.equal(step(4, 'down'), 4);
    assert.equal(step(3, 'right'), 5);
    assert.equal(step(5, 'right'), 5);
    assert.equal(step(3, 'left'), 4);
    assert.equal(step(4, 'left'), 4);
  });

  it('stay in view, and pass over what is too narrow to see', () => {
    const zoomed = viewOf(plan, 1, 60);
    assert.equal(step(3, 'right', zoomed), 3);
    assert.equal(step(3, 'right', whole, 7), 3);
    assert.equal(step(2, 'down', whole, 7), 2);
  });
});

describe('figures', () => {
  it('have the digits that they deserve', () => {
    const shown = [0, 0.004, 0.125, 9.994, 9.996, 12.34, 99.94, 99.96, 1234.5, 1234567].map(amount);
    assert.deepEqual(shown, ['0', '0.00', '0.13', '9.99', '10.0', '12.3', '99.9', '100', '1,235', '1,234,567']);
    assert.deepEqual([3.14159, -83.94, 0.001, -1234, 0].map(signed), ['+3.14', '−83.9', '0', '−1,234', '0']);
    assert.deepEqual([percent(1, 3), percent(1, 200), percent(0, 7), percent(1, 0)], ['33 %', '0.5 %', '0 %', '–']);
  });

  it('on the ruler are round, and fill it', () => {
    assert.deepEqual(ticks(210, 6), [0, 50, 100, 150, 200]);
    assert.deepEqual(ticks(1, 5).map(mark), ['0', '0.2', '0.4', '0.6', '0.8', '1']);
    assert.deepEqual([ticks(0, 5), ticks(NaN, 5), ticks(5, 0)], [[], [], []]);
    for (const span of [1e-7, 0.3, 7, 99, 123_456, 1e12]) {
      const values = ticks(span, 8);
      assert.ok(values.length >= 2 && values.length <= 9 && values.at(-1) <= span * 1.001, `${span}: ${values}`);
    }
  });
});

describe('colours', () => {
  it('are mixed and judged as in the drawings', () => {
    assert.equal(mixed('#000000', '#ffffff', 0.5), '#808080');
    assert.equal(mixed('#ecedf0', '#f0832c', 1), '#f0832c');
    assert.equal(contrast('#ffffff', '#000000').toFixed(1), '21.0');
  });
});
