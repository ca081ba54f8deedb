'use strict';

// Numbers that look random and are the same on every machine. Nothing here looks at the clock or at real randomness.

// A linear congruential generator (constants of Numerical Recipes) gives `random(limit)` → integer in [0, limit).
function seededRandom(seed) {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

function pick(list, random) {
  return list[random(list.length)];
}

module.exports = { pick, seededRandom };
