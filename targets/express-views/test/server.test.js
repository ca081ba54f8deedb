'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const test = require('node:test');
const { testContract } = require('../../tests/contract');
const { serviceFor } = require('../../tests/service');

const VOID_ELEMENTS = new Set(['meta', 'link', 'br', 'hr', 'img', 'input']);
const directory = path.join(__dirname, '..');

async function pageIn(t, NODE_ENV) {
  const service = await serviceFor(t, directory, { NODE_ENV });
  await (await service.get('/')).arrayBuffer();
  const response = await service.get('/');
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type'), /^text\/html/);
  return response.text();
}

// Every element that is opened is closed, in order: gives the names of the elements in order of opening.
function elementsOf(html) {
  const opened = [];
  const open = [];
  for (const [, slash, name] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)[^<>]*>/g)) {
    if (slash) {
      assert.equal(name, open.pop(), 'an element is closed that was not the last one opened');
    } else {
      opened.push(name);
      if (!VOID_ELEMENTS.has(name)) open.push(name);
    }
  }
  assert.deepEqual(open, [], 'elements left open');
  return opened;
}

test('the page has its size, is well formed and has 200 rows of data', async (t) => {
  const page = await pageIn(t, 'production');
  const bytes = Buffer.byteLength(page);
  assert.ok(bytes >= 36_000 && bytes <= 44_000, `${bytes} bytes`);
  assert.ok(page.startsWith('<!DOCTYPE html><html lang="en">'));
  assert.ok(page.includes('Brug &lt;Oost&gt;'), 'data is escaped');
  const rows = elementsOf(page).filter((name) => name === 'tr');
  assert.equal(rows.length, 1 + 200);
});

test('development and production render the same page', async (t) => {
  assert.equal(await pageIn(t, 'development'), await pageIn(t, 'production'));
});

testContract(directory);
