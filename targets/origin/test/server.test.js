'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const test = require('node:test');
const { testContract } = require('../../tests/contract');
const { serviceFor } = require('../../tests/service');

const directory = path.join(__dirname, '..');

test('the response has 13 bytes and says so, and its connection is kept for longer than proxies keep theirs', async (t) => {
  const service = await serviceFor(t, directory);
  const response = await service.get('/');
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-length'), '13');
  assert.equal(await response.text(), 'Hello, world!');
  assert.equal(response.headers.get('keep-alive'), 'timeout=65');
});

testContract(directory);
