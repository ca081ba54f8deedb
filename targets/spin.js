'use strict';

// Work that nothing can spare: turns of a loop each of which needs the one before. For services that have to cost something; it must not wait.

let sink = 0;

/** Makes so many turns. */
function turn(times) {
  let state = 2463534242;
  for (let index = 0; index < times; index += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
  }
  sink ^= state;
}

/** What came of all turns: who tells it keeps the compiler from leaving them out. */
const spun = () => sink;

module.exports = { spun, turn };
