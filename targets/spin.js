'use strict';

// CPU work that a compiler cannot remove: each turn of a loop needs the one before. It must not wait.

let sink = 0;

/** Runs so many turns. */
function turn(times) {
  let state = 2463534242;
  for (let index = 0; index < times; index += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
  }
  sink ^= state;
}

/** The result of all turns. Its use keeps the compiler from removing them. */
const spun = () => sink;

module.exports = { spun, turn };
