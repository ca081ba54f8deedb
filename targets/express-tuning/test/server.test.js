'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const test = require('node:test');
const { testContract } = require('../../tests/contract');
const { testDocument } = require('../../tests/document');
const { testEncodings } = require('../../tests/encodings');
const { serviceFor, startService } = require('../../tests/service');

const BODY_BYTES = 42_477;
const directory = path.join(__dirname, '..');

test('development and production render the same page, of 100 escaped rows', async (t) => {
  const pages = [];
  for (const NODE_ENV of ['development', 'production']) {
    const service = await serviceFor(t, directory, { NODE_ENV });
    const response = await service.get('/page');
    assert.equal(response.status, 200);
    assert.match(response.headers.get('content-type'), /^text\/html/);
    pages.push(await response.text());
  }
  assert.equal(pages[0].match(/<tr[ >]/g).length, 1 + 100);
  assert.ok(pages[0].includes('Husum &lt;Nord&gt;'));
  assert.ok(pages[0].endsWith('</html>'));
  assert.equal(pages[1], pages[0]);
});

test('WORK is done or not, and both ways to do it give the same', async (t) => {
  const signature = async (WORK) => {
    const service = await serviceFor(t, directory, { WORK });
    const response = await service.get('/');
    assert.equal((await response.arrayBuffer()).byteLength, BODY_BYTES);
    return response.headers.get('x-signature');
  };
  const made = await signature('sync');
  assert.match(made, /^[0-9a-f]{64}$/);
  assert.equal(await signature('async'), made);
  assert.equal(await signature('none'), null);
});

test('LOGGER writes a line for each request, health aside, and loses none at the end', async () => {
  const requests = 30; // fewer than what is gathered before it is written
  const linesOf = async (LOGGER) => {
    const service = await startService(directory, { LOGGER });
    await (await service.get('/healthz')).arrayBuffer();
    for (let i = 0; i < requests; i += 1) await (await service.get(`/?n=${i}`)).arrayBuffer();
    assert.equal(await service.stop(), 0);
    const lines = [];
    for (let line = await service.nextLine(); line !== undefined; line = await service.nextLine()) lines.push(line);
    return lines;
  };
  assert.deepEqual(await linesOf('none'), []);
  const plain = await linesOf('console');
  assert.equal(plain.length, requests);
  plain.forEach((line, i) => assert.match(line, new RegExp(`GET /\\?n=${i} 200 [\\d.]+ ms$`)));
  const entries = (await linesOf('pino')).map((line) => JSON.parse(line));
  assert.deepEqual(entries.map(({ url, status }) => `${url} ${status}`), plain.map((_, i) => `/?n=${i} 200`));
});

testDocument(directory, BODY_BYTES);
testEncodings(directory, ['/', '/page']);
testContract(directory);
