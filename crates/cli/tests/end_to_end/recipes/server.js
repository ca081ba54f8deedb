// A service for the recipe: WORK is how much each request does.
const { createHash } = require('node:crypto');
const { createServer } = require('node:http');

const work = Number(process.env.WORK ?? 1);

function digest() {
  let text = 'order';
  for (let round = 0; round < work; round++) text = createHash('sha256').update(text).digest('hex');
  return text;
}

createServer((_, response) => response.end(digest())).listen(Number(process.env.PORT), '127.0.0.1');
