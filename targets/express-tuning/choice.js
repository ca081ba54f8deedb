'use strict';

// Reads a switch from the environment. It must not know which switches there are.

/** The value that `variable` names, of which the first is the default. A slip of the pen must not be measured as that. */
function chosen(variable, values) {
  const name = process.env[variable] ?? Object.keys(values)[0];
  if (Object.hasOwn(values, name)) return values[name];
  throw new Error(`${variable} is ${name}, expected one of ${Object.keys(values).join(', ')}`);
}

module.exports = { chosen };
