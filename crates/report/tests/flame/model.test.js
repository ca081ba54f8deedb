'use strict';

// What the flame page computes, without a browser: no time is lost when a tree is turned round, searched or compared, and what is
// gone in one variant is still there to see.

const { describe, it } = require('node:test');
const assert = require('node:assert/strict');

const model = require('../../src/flame/model.js');
const { layout } = require('../../src/flame/layout.js');
const { EVERYTHING, bottomUp, byKind, calleesOf, callersOf, heavy, matched, matching, pathTo, treeOfGrove } = model;

const [MAIN, HANDLE, HASH, SEND, POOL] = [0, 1, 2, 3, 4];
const always = () => true;

/** A grove of paths: functions from the outermost to the innermost, time in A, time in B. */
function groveOf(paths) {
  const grove = { frame: [], parent: [], members: [{ own: [] }, { own: [] }] };
  const known = new Map();
  for (const [path, a, b] of paths) {
    let at = -1;
    for (const frame of path) {
      const key = `${at} ${frame}`;
      if (!known.has(key)) {
        known.set(key, grove.frame.length);
        grove.frame.push(frame);
        grove.parent.push(at);
        grove.members.forEach((member) => member.own.push(0));
      }
      at = known.get(key);
    }
    grove.members[0].own[at] += a;
    grove.members[1].own[at] += b;
  }
  return grove;
}

function treeOfPaths(paths, counts = always) {
  const grove = groveOf(paths);
  return treeOfGrove(grove, grove.members[0], grove.members[1], counts);
}

/** Hashing on the main thread in A, in the pool in B. */
const HASHED = [
  [[MAIN], 2, 3],
  [[MAIN, HANDLE], 5, 5],
  [[MAIN, HANDLE, HASH], 200, 0],
  [[MAIN, HANDLE, SEND], 20, 22],
  [[MAIN, SEND], 1, 1],
  [[POOL], 0, 190],
];

/** A large tree that looks random and is the same each time, with functions that call themselves and each other. */
function random(seed) {
  let state = seed;
  const next = (end) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * end);
  };
  const paths = Array.from({ length: 400 }, () => {
    const path = Array.from({ length: 1 + next(12) }, () => next(15));
    return [path, next(4) === 0 ? 0 : next(1000) / 8, next(4) === 0 ? 0 : next(1000) / 8];
  });
  return treeOfPaths(paths);
}

const TREES = [treeOfPaths(HASHED), random(1), random(2), random(3)];

function near(actual, expected, what) {
  assert.ok(Math.abs(actual - expected) <= 1e-6 * Math.max(1, Math.abs(expected)), `${what}: ${actual}, expected ${expected}`);
}

function rowOf(tree, frame) {
  return heavy(tree).find((row) => row.frame === frame);
}

describe('a tree of two variants', () => {
  it('has all time below its first node', () => {
    const tree = treeOfPaths(HASHED);
    assert.deepEqual([tree.totalA[0], tree.totalB[0]], [228, 221]);
  });

  it('leaves nothing out that is gone in B or new there: both have their width', () => {
    const tree = treeOfPaths(HASHED);
    const plan = layout(tree, tree.totalBoth);
    const width = (frame) => plan.total[tree.frame.indexOf(frame)];
    assert.deepEqual([width(HASH), width(POOL)], [200, 190]);
    assert.equal(tree.totalB[tree.frame.indexOf(HASH)], 0);
    assert.equal(plan.total[0], 3 + 5 + 200 + 22 + 1 + 190);
  });

  it('takes a variant without a profile of the service for one without time', () => {
    const grove = groveOf(HASHED);
    const tree = treeOfGrove(grove, grove.members[0], null, always);
    assert.deepEqual([tree.totalA[0], tree.totalB[0]], [228, 0]);
  });

  it('without the time of a function still has that of what it calls', () => {
    const tree = treeOfPaths(HASHED, (frame) => frame !== HANDLE);
    assert.deepEqual([tree.totalA[0], tree.totalB[0]], [223, 216]);
    assert.equal(rowOf(tree, HASH).selfA, 200);
  });
});

describe('heavy functions', () => {
  it('have the time that was planted, in themselves and in all', () => {
    const send = rowOf(treeOfPaths(HASHED), SEND);
    assert.deepEqual(send, { frame: SEND, selfA: 21, selfB: 23, totalA: 21, totalB: 23 });
    const main = rowOf(treeOfPaths(HASHED), MAIN);
    assert.deepEqual([main.selfA, main.totalA, main.totalB], [2, 228, 31]);
  });

  it('that call themselves have their time once', () => {
    const tree = treeOfPaths([[[MAIN], 1, 1], [[MAIN, HASH, MAIN], 2, 2], [[MAIN, MAIN], 4, 4]]);
    const row = rowOf(tree, MAIN);
    assert.deepEqual([row.selfA, row.totalA], [7, 7]);
  });

  it('have all time together', () => {
    for (const tree of TREES) {
      near(heavy(tree).reduce((sum, row) => sum + row.selfA, 0), tree.totalA[0], 'A');
      near(heavy(tree).reduce((sum, row) => sum + row.selfB, 0), tree.totalB[0], 'B');
    }
  });
});

describe('bottom-up', () => {
  it('has the same time as top-down, for all and for each function', () => {
    for (const tree of TREES) {
      const turned = bottomUp(tree, 0);
      near(turned.totalA[0], tree.totalA[0], 'all of A');
      near(turned.totalB[0], tree.totalB[0], 'all of B');
      for (const row of heavy(tree)) {
        const first = turned.frame.findIndex((frame, node) => frame === row.frame && turned.parent[node] === 0);
        near(first < 0 ? 0 : turned.totalA[first], row.selfA, `A of ${row.frame}`);
        near(first < 0 ? 0 : turned.totalB[first], row.selfB, `B of ${row.frame}`);
      }
    }
  });

  it('loses no time where small callers are not shown', () => {
    for (const tree of TREES) near(bottomUp(tree, tree.totalA[0] / 50).totalA[0], tree.totalA[0], 'all of A');
  });

  it('follows a function up to who called it', () => {
    const turned = bottomUp(treeOfPaths(HASHED), 0);
    const hash = turned.frame.findIndex((frame, node) => frame === HASH && turned.parent[node] === 0);
    const handle = turned.parent.indexOf(hash);
    assert.deepEqual([turned.frame[handle], turned.totalA[handle], turned.totalB[handle]], [HANDLE, 200, 0]);
  });
});

describe('a function by itself', () => {
  it('has its whole time both in who calls it and in what it calls', () => {
    for (const tree of TREES) {
      for (const row of heavy(tree)) {
        const [callers, callees] = [callersOf(tree, row.frame, 0), calleesOf(tree, row.frame)];
        near(callers.totalA[0], row.totalA, `callers of ${row.frame}`);
        near(callees.totalA[0], row.totalA, `what ${row.frame} calls`);
        near(callees.totalB[0], row.totalB, `what ${row.frame} calls in B`);
      }
    }
  });

  it('has its callers apart from each other', () => {
    const callers = callersOf(treeOfPaths(HASHED), SEND, 0);
    const first = [...callers.frame.keys()].filter((node) => callers.parent[node] === 0);
    const seen = first.map((node) => [callers.frame[node], callers.totalA[node]]);
    assert.deepEqual(seen.sort(), [[MAIN, 1], [HANDLE, 20]]);
  });
});

describe('search', () => {
  const texts = ['pbkdf2sync node:internal/crypto application', '(anonymous a.js:1) [x] .*', 'handle router@2.2.0 framework'];

  it('takes every character as it is', () => {
    assert.deepEqual([...matching(texts, '.*')], [0, 1, 0]);
    assert.deepEqual([...matching(texts, '[x]')], [0, 1, 0]);
    assert.deepEqual([...matching(texts, '(a+)+$')], [0, 0, 0]);
    assert.deepEqual([...matching(texts, '\\')], [0, 0, 0]);
  });

  it('wants all words, in whichever case, and nothing of blanks', () => {
    assert.deepEqual([...matching(texts, ' ROUTER  handle ')], [0, 0, 1]);
    assert.deepEqual([...matching(texts, 'crypto router')], [0, 0, 0]);
    assert.equal(matching(texts, '   '), null);
  });

  it('counts the time of what matches once, with what it calls', () => {
    const tree = treeOfPaths(HASHED);
    const found = matched(tree, Uint8Array.from([0, 1, 1, 0, 0])); // HANDLE, and HASH below it
    assert.deepEqual([found.a, found.b], [225, 27]);
  });
});

describe('kinds', () => {
  it('have all time together', () => {
    for (const tree of TREES) {
      const kinds = byKind(tree, (frame) => frame % 3, 3);
      near(kinds.reduce((sum, row) => sum + row.a, 0), tree.totalA[0], 'A');
    }
  });
});

describe('the way to a node', () => {
  it('begins with everything and ends with the node', () => {
    const tree = treeOfPaths(HASHED);
    const path = pathTo(tree, tree.frame.indexOf(HASH)).map((node) => tree.frame[node]);
    assert.deepEqual(path, [EVERYTHING, MAIN, HANDLE, HASH]);
  });
});
