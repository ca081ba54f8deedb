'use strict';

// What the targets that return one JSON document promise of it. The content is for each target's own tests.

const assert = require('node:assert/strict');
const test = require('node:test');
const { serviceFor } = require('./service');

/** Registers the test of the document at `/` of the target in `directory`. */
function testDocument(directory, bytes) {
  test('the document has its exact size, the header says so, and it is the same in every process and NODE_ENV', async (t) => {
    const bodies = new Set();
    for (const NODE_ENV of ['development', 'production', 'production']) {
      const service = await serviceFor(t, directory, { NODE_ENV });
      const response = await service.get('/');
      assert.match(response.headers.get('content-type'), /^application\/json/);
      assert.equal(response.headers.get('content-length'), String(bytes));
      bodies.add(await response.text());
    }
    const [body, ...others] = bodies;
    assert.deepEqual([Buffer.byteLength(body), others], [bytes, []]);
  });
}

module.exports = { testDocument };
