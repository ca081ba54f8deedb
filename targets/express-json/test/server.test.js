'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const test = require('node:test');
const { testEncodings } = require('../../tests/encodings');
const { testContract } = require('../../tests/contract');
const { serviceFor } = require('../../tests/service');

const BODY_BYTES = 134_054;
const directory = path.join(__dirname, '..');

test('the document has its exact size, and the header says so', async (t) => {
  const service = await serviceFor(t, directory);
  const response = await service.get('/');
  const body = await response.arrayBuffer();
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type'), /^application\/json/);
  assert.equal(response.headers.get('content-length'), String(BODY_BYTES));
  assert.equal(body.byteLength, BODY_BYTES);
});

test('the document is the same after a restart and in every NODE_ENV', async (t) => {
  const bodies = [];
  for (const NODE_ENV of ['development', 'production', 'production']) {
    const service = await serviceFor(t, directory, { NODE_ENV });
    bodies.push(await (await service.get('/')).text());
  }
  assert.equal(bodies[1], bodies[0]);
  assert.equal(bodies[2], bodies[0]);
  assert.ok(JSON.parse(bodies[0]).products.length > 100);
});

testContract(directory);
testEncodings(directory);
