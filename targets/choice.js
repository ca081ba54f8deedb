'use strict';

// Reads a switch from the environment. It must not know which switches there are.

/** The value that `variable` names; the first is the default. A typing error must not be measured as the default. */
function chosen(variable, values) {
  const name = process.env[variable] ?? Object.keys(values)[0];
  if (Object.hasOwn(values, name)) return values[name];
  throw new Error(`${variable} is ${name}, expected one of ${Object.keys(values).join(', ')}`);
}

module.exports = { chosen };
