'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { setTimeout: pause } = require('node:timers/promises');
const { testContract } = require('../../tests/contract');
const { serviceFor } = require('../../tests/service');
const { dataFolder, directory, scratchFolder } = require('../../tests/json-data');

const DATA = dataFolder();
const speakers = JSON.parse(fs.readFileSync(path.join(DATA, 'small.json')));
const places = JSON.parse(fs.readFileSync(path.join(DATA, 'large.json')));
const SMALL = ['/data/small/net/stream', '/data/small/net/promise', '/data/small/disk/stream', '/data/small/disk/promise'];
const LARGE = ['/data/large/stream', '/data/large/promise'];

async function startBoth(t) {
  const { origin: UPSTREAM } = await serviceFor(t, directory, { DATA }, 'upstream.js');
  return serviceFor(t, directory, { DATA, UPSTREAM }, 'bin/www-single');
}

async function answerOf(service, path) {
  const response = await service.get(path);
  const { date, ...headers } = Object.fromEntries(response.headers);
  return { status: response.status, headers, body: await response.text() };
}

async function assertAllAnswer(service, routes, parameter, expected) {
  const answers = await Promise.all(routes.map((route) => answerOf(service, `${route}/${parameter}`)));
  assert.equal(answers[0].status, 200);
  assert.match(answers[0].headers['content-type'], /^application\/json/);
  assert.deepEqual(JSON.parse(answers[0].body), expected);
  for (const answer of answers) assert.deepEqual(answer, answers[0]);
}

test('all ways of reading find the same records, first and last ones too, and give the same answer', async (t) => {
  const service = await startBoth(t);
  for (const speaker of [speakers[0], speakers[41], speakers.at(-1)]) {
    await assertAllAnswer(service, SMALL, speaker.id, [speaker]);
  }
  for (const place of [places[0], places[1234], places.at(-1)]) {
    await assertAllAnswer(service, LARGE, place.zipcode, [place]);
  }
});

test('what is not there is an empty list', async (t) => {
  const service = await startBoth(t);
  for (const parameter of ['0', '01', '1.0', 'nobody', '__proto__']) {
    await assertAllAnswer(service, SMALL, parameter, []);
    await assertAllAnswer(service, LARGE, parameter, []);
  }
});

test('the upstream says how long a document is, and serves nothing else of its folder', async (t) => {
  fs.writeFileSync(path.join(DATA, 'secret.json'), '{}');
  const upstream = await serviceFor(t, directory, { DATA }, 'upstream.js');
  for (const name of ['small.json', 'large.json']) {
    const response = await upstream.get(`/${name}`);
    const bytes = Buffer.from(await response.arrayBuffer());
    assert.equal(response.headers.get('content-length'), String(bytes.length));
    assert.deepEqual(bytes, fs.readFileSync(path.join(DATA, name)));
  }
  assert.equal((await upstream.get('/secret.json')).status, 404);
});

test('a client that leaves in the midst of a large document does not leave its file open in the upstream', async (t) => {
  const folder = scratchFolder();
  fs.writeFileSync(path.join(folder, 'large.json'), '');
  fs.truncateSync(path.join(folder, 'large.json'), 2 ** 30); // a hole, which takes no room on the disk
  const upstream = await serviceFor(t, directory, { DATA: folder }, 'upstream.js');
  const openFiles = () => fs.readdirSync(`/proc/${upstream.pid}/fd`).map((fd) => nameOf(upstream.pid, fd));
  const client = new AbortController();
  const { body } = await fetch(`${upstream.origin}/large.json`, { signal: client.signal });
  await body.getReader().read();
  assert.ok(openFiles().includes(path.join(folder, 'large.json')));
  client.abort();
  while (openFiles().includes(path.join(folder, 'large.json'))) await pause(10);
  assert.equal((await upstream.get('/healthz')).status, 200);
});

function nameOf(pid, fd) {
  try {
    return fs.readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return undefined; // closed meanwhile
  }
}

// With one worker the count of a worker is that of the service.
testContract(directory, { entry: 'bin/www', env: { DATA, WORKERS: '1' }, path: '/data/small/disk/promise/1' });
testContract(directory, { entry: 'bin/www-single', env: { DATA }, path: '/data/small/disk/stream/1' });
testContract(directory, { entry: 'upstream.js', env: { DATA }, path: '/small.json' });
