'use strict';

// What the flame page shows, computed: trees of calls with their time in two variants, turned round, added up, searched. Pure:
// it must not touch the page, so that it is tested without a browser.
//
// A tree has its nodes in arrays, callers before what they call. Node 0 is everything, or the one function that a tree is about;
// `a` and `b` are the time in each node itself in the two variants, `totalA` and `totalB` that with what it calls.

const EVERYTHING = -1; // in place of a function's number

/** The sum of each node and of all that it calls. */
function sums(parent, own) {
  const total = Float64Array.from(own);
  for (let node = total.length - 1; node > 0; node -= 1) total[parent[node]] += total[node];
  return total;
}

/** What each node calls, the heaviest first: those of `node` are `list[start[node]]` up to `list[start[node + 1]]`. */
function callsOf(parent, weight) {
  const size = parent.length;
  const start = new Int32Array(size + 1);
  for (let node = 1; node < size; node += 1) start[parent[node] + 1] += 1;
  for (let node = 0; node < size; node += 1) start[node + 1] += start[node];
  const list = new Int32Array(size - 1);
  const free = start.slice();
  for (let node = 1; node < size; node += 1) {
    list[free[parent[node]]] = node;
    free[parent[node]] += 1;
  }
  for (let node = 0; node < size; node += 1) {
    const calls = list.subarray(start[node], start[node + 1]);
    if (calls.length > 1) calls.sort((one, other) => weight[other] - weight[one] || one - other);
  }
  return { start, list };
}

/**
 * A tree of its arrays. In `both` a node's own time is the greater of the two: a call that is gone in B is as wide there as one
 * that is new.
 */
function treeOf({ frame, parent, a, b }) {
  const both = Float64Array.from(a, (own, node) => Math.max(own, b[node]));
  const totalBoth = sums(parent, both);
  return {
    size: parent.length,
    frame,
    parent,
    a,
    b,
    both,
    totalA: sums(parent, a),
    totalB: sums(parent, b),
    totalBoth,
    calls: callsOf(parent, totalBoth),
  };
}

/**
 * The tree of a grove of the page's data for two of its members, either of which may be missing. The time of functions that do
 * not count is left out; where they call others, theirs stays.
 */
function treeOfGrove(grove, a, b, counts) {
  const size = grove.frame.length + 1;
  const grown = {
    frame: new Int32Array(size),
    parent: new Int32Array(size),
    a: new Float64Array(size),
    b: new Float64Array(size),
  };
  grown.frame[0] = EVERYTHING;
  grown.parent[0] = -1;
  for (let node = 1; node < size; node += 1) {
    const frame = grove.frame[node - 1];
    grown.frame[node] = frame;
    grown.parent[node] = grove.parent[node - 1] + 1;
    if (!counts(frame)) continue;
    grown.a[node] = a ? a.own[node - 1] : 0;
    grown.b[node] = b ? b.own[node - 1] : 0;
  }
  return treeOf(grown);
}

/** Calls `enter` and `leave` for each node, callers outside of what they call. */
function walk(tree, enter, leave) {
  const { start, list } = tree.calls;
  const open = [0];
  while (open.length > 0) {
    const next = open.pop();
    if (next < 0) {
      leave(~next);
      continue;
    }
    enter(next);
    open.push(~next);
    for (let at = start[next + 1] - 1; at >= start[next]; at -= 1) open.push(list[at]);
  }
}

/** Every function with its time in itself and in all. Where a function calls itself, the time in all counts once. */
function heavy(tree) {
  const rows = new Map();
  const open = new Map(); // how many calls of a function are under way
  const counts = (node) => tree.frame[node] !== EVERYTHING && tree.totalBoth[node] > 0;
  const enter = (node) => {
    if (!counts(node)) return;
    const frame = tree.frame[node];
    let row = rows.get(frame);
    if (!row) rows.set(frame, (row = { frame, selfA: 0, selfB: 0, totalA: 0, totalB: 0 }));
    row.selfA += tree.a[node];
    row.selfB += tree.b[node];
    const calls = open.get(frame) ?? 0;
    open.set(frame, calls + 1);
    if (calls > 0) return;
    row.totalA += tree.totalA[node];
    row.totalB += tree.totalB[node];
  };
  const leave = (node) => {
    const frame = tree.frame[node];
    if (counts(node)) open.set(frame, open.get(frame) - 1);
  };
  walk(tree, enter, leave);
  return [...rows.values()];
}

/** The nodes of marked functions that no marked function is above, and whether each node is one or below one. */
function outermost(tree, isMarked) {
  const within = new Uint8Array(tree.size);
  const nodes = [];
  for (let node = 0; node < tree.size; node += 1) {
    const above = node > 0 && within[tree.parent[node]] === 1;
    const marked = tree.frame[node] !== EVERYTHING && isMarked(tree.frame[node]);
    if (marked && !above) nodes.push(node);
    if (marked || above) within[node] = 1;
  }
  return { nodes, within };
}

/** What begins as one node and grows. */
function seed(frame) {
  return { frame: [frame], parent: [-1], a: [0], b: [0] };
}

function grow(grown, frame, parent) {
  grown.frame.push(frame);
  grown.parent.push(parent);
  grown.a.push(0);
  grown.b.push(0);
  return grown.frame.length - 1;
}

/**
 * A tree turned round: below each function who called it. `origins` are the nodes whose time `a` and `b` is followed upwards, and
 * `cursors` the nodes that stand in the first row. Callers through which less than `minimum` comes stay within what they called.
 */
function turned(tree, { frame, origins, cursors, a, b, minimum }) {
  const grown = seed(frame);
  const open = [{ at: 0, origins, cursors }];
  while (open.length > 0) {
    const path = open.pop();
    for (const group of byFunction(tree, path, a, b, grown)) {
      if (Math.max(group.a, group.b) < minimum) {
        grown.a[path.at] += group.a;
        grown.b[path.at] += group.b;
      } else {
        open.push({ at: grow(grown, group.frame, path.at), origins: group.origins, cursors: group.cursors });
      }
    }
  }
  return treeOf(grown);
}

/** The next callers of a path, by function. What has none ends in the path itself. */
function byFunction(tree, path, a, b, grown) {
  const groups = new Map();
  path.cursors.forEach((cursor, index) => {
    const origin = path.origins[index];
    const frame = cursor < 0 ? EVERYTHING : tree.frame[cursor];
    if (frame === EVERYTHING) {
      grown.a[path.at] += a[origin];
      grown.b[path.at] += b[origin];
      return;
    }
    let group = groups.get(frame);
    if (!group) groups.set(frame, (group = { frame, a: 0, b: 0, origins: [], cursors: [] }));
    group.a += a[origin];
    group.b += b[origin];
    group.origins.push(origin);
    group.cursors.push(tree.parent[cursor]);
  });
  return groups.values();
}

/** Bottom-up: in the first row the functions that take the time themselves, below each who called it. */
function bottomUp(tree, minimum) {
  const origins = [];
  for (let node = 0; node < tree.size; node += 1) if (tree.both[node] > 0) origins.push(node);
  return turned(tree, { frame: EVERYTHING, origins, cursors: origins, a: tree.a, b: tree.b, minimum });
}

/** Who calls a function, with the time in it and in what it calls. */
function callersOf(tree, frame, minimum) {
  const origins = outermost(tree, (other) => other === frame).nodes;
  const cursors = origins.map((node) => tree.parent[node]);
  return turned(tree, { frame, origins, cursors, a: tree.totalA, b: tree.totalB, minimum });
}

/** What a function calls, from wherever it was called. */
function calleesOf(tree, frame) {
  const grown = seed(frame);
  const open = [{ at: 0, nodes: outermost(tree, (other) => other === frame).nodes }];
  const { start, list } = tree.calls;
  while (open.length > 0) {
    const { at, nodes } = open.pop();
    const groups = new Map();
    for (const node of nodes) {
      grown.a[at] += tree.a[node];
      grown.b[at] += tree.b[node];
      for (let index = start[node]; index < start[node + 1]; index += 1) {
        const called = list[index];
        if (tree.totalBoth[called] <= 0) continue;
        const group = groups.get(tree.frame[called]);
        if (group) group.push(called);
        else groups.set(tree.frame[called], [called]);
      }
    }
    for (const [called, group] of groups) open.push({ at: grow(grown, called, at), nodes: group });
  }
  return treeOf(grown);
}

/** Time by kind, in the order of the kinds. */
function byKind(tree, kindOf, kinds) {
  const rows = Array.from({ length: kinds }, () => ({ a: 0, b: 0 }));
  for (let node = 0; node < tree.size; node += 1) {
    if (tree.frame[node] === EVERYTHING) continue;
    const row = rows[kindOf(tree.frame[node])];
    row.a += tree.a[node];
    row.b += tree.b[node];
  }
  return rows;
}

/**
 * Which texts have every word of a search, wherever and in whichever case; `null` where there is no word. Words are taken as they
 * are: no character has a meaning of its own.
 */
function matching(texts, search) {
  const words = search.toLowerCase().split(/\s+/).filter((word) => word !== '');
  if (words.length === 0) return null;
  return Uint8Array.from(texts, (text) => (words.every((word) => text.includes(word)) ? 1 : 0));
}

/** How much of a tree's time is in functions that match and in what they call, counted once. */
function matched(tree, matches) {
  const { nodes, within } = outermost(tree, (frame) => matches[frame] === 1);
  let [a, b] = [0, 0];
  for (const node of nodes) {
    a += tree.totalA[node];
    b += tree.totalB[node];
  }
  return { a, b, within };
}

/** The nodes from everything down to this one. */
function pathTo(tree, node) {
  const path = [];
  for (let at = node; at >= 0; at = tree.parent[at]) path.push(at);
  return path.reverse();
}

/** The largest difference of any node, which has the strongest colour. */
function changeMax(tree) {
  let most = 0;
  for (let node = 0; node < tree.size; node += 1) {
    most = Math.max(most, Math.abs(tree.totalB[node] - tree.totalA[node]));
  }
  return most;
}

if (typeof module !== 'undefined') {
  module.exports = { EVERYTHING, bottomUp, byKind, calleesOf, callersOf, changeMax, heavy, matched, matching, outermost, pathTo };
  Object.assign(module.exports, { sums, treeOf, treeOfGrove });
}
