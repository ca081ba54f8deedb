'use strict';

// Two ways to find records in a source that is a JSON array. Both find the same records in the same order.
//
// Of the maintained streaming parsers, @streamparser/json (MIT, no dependencies) is the fastest that runs on
// Node.js 20. 64 MB of zip codes cost it 2.3 s of CPU here, where stream-json 1 and 2 took 4.4 and 9.6 s, and stream-json 3,
// which wants Node.js 22, took 3.3 s. JSON.parse takes 0.5 s.

const { JSONParser } = require('@streamparser/json');

/** Has one piece of the text and one record in memory at a time, however large the source is. */
async function findByStream(source, isWanted, signal) {
  const found = [];
  const parser = new JSONParser({ paths: ['$.*'], keepStack: false });
  parser.onValue = ({ value }) => {
    if (isWanted(value)) found.push(value);
  };
  parser.onError = (error) => {
    throw new SyntaxError(error.message, { cause: error }); // as JSON.parse does
  };
  // The next piece is read when the last one is parsed, so a fast source waits.
  for await (const bytes of await source.open(signal)) parser.write(bytes);
  if (!parser.isEnded) throw new SyntaxError('the JSON text ends too early');
  return found;
}

/** Has the whole text in memory, and then all records too. A text above 536,870,888 characters cannot be had at all. */
async function findByPromise(source, isWanted, signal) {
  return (await source.json(signal)).filter(isWanted);
}

module.exports = { findByPromise, findByStream };
