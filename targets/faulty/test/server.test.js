'use strict';

// A fault that is not there would pass for one that was not found, and one that is there unasked for a false alarm.
// Times have lower limits alone, which a slow machine keeps too.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const { serviceFor, startService } = require('../../tests/service');
const { talk } = require('../../tests/wire');

const EARLY_MS = 5; // a timer may fire that much before its time
const REQUEST = 'GET / HTTP/1.1\r\nHost: faulty\r\n\r\n';
const directory = path.join(__dirname, '..');

const serverFor = (t, env) => serviceFor(t, directory, env);

async function statuses(service, count) {
  const all = Array.from({ length: count }, () => service.get('/').then((response) => response.status));
  return Promise.all(all);
}

async function timeMs(service) {
  const begun = performance.now();
  await (await service.get('/')).arrayBuffer();
  return performance.now() - begun;
}

function rssMb(service) {
  const line = fs.readFileSync(`/proc/${service.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+) kB/);
  return Number(line[1]) / 1024;
}

function cpuMs(service) {
  return Number(fs.readFileSync(`/proc/${service.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
}

test('without a variable every answer is the same, good, and its connection is kept', async (t) => {
  const service = await serverFor(t, {});
  assert.deepEqual(new Set(await statuses(service, 50)), new Set([200]));
  const response = await service.get('/');
  assert.equal(await response.text(), 'x'.repeat(1000));
  assert.notEqual(response.headers.get('connection'), 'close');
});

test('BODY_BYTES and LETTER make other answers', async (t) => {
  const service = await serverFor(t, { BODY_BYTES: '7', LETTER: 'y' });
  assert.equal(await (await service.get('/')).text(), 'yyyyyyy');
});

test('ERROR_SHARE of the answers are errors, and health is none of them', async (t) => {
  const some = new Set(await statuses(await serverFor(t, { ERROR_SHARE: '0.5' }), 60));
  assert.deepEqual([...some].sort(), [200, 500]);
  const service = await serverFor(t, { ERROR_SHARE: '1' });
  assert.deepEqual(new Set(await statuses(service, 20)), new Set([500]));
  assert.equal((await service.get('/healthz')).status, 200);
});

test('DELAY_MS makes every answer wait', async (t) => {
  const service = await serverFor(t, { DELAY_MS: '100' });
  for (let i = 0; i < 3; i += 1) assert.ok((await timeMs(service)) >= 100 - EARLY_MS);
});

test('CLOSE_AFTER so many requests a connection is closed', async (t) => {
  const service = await serverFor(t, { CLOSE_AFTER: '2' });
  // It ends when the service closes.
  const text = await talk(service.origin, REQUEST.repeat(2));
  assert.equal(text.match(/200 OK/g).length, 2);
  assert.match(text, /Connection: close/);
});

test('LEAK_BYTES of each request stay', async (t) => {
  const service = await serverFor(t, { LEAK_BYTES: '1000000' });
  const before = rssMb(service);
  await statuses(service, 100);
  assert.ok(rssMb(service) - before > 80);
});

test('SLOW_REQUESTS cost more, and then no others do', async (t) => {
  const service = await serverFor(t, { SLOW_REQUESTS: '2000' });
  const cost = async () => {
    const before = cpuMs(service);
    for (let i = 0; i < 20; i += 1) await statuses(service, 100);
    return cpuMs(service) - before;
  };
  // 50,000 turns wait for each other: 2,000 times that are at 6 GHz 0.1 s.
  const [slow, plain] = [await cost(), await cost()];
  assert.ok(slow - plain > 50, `${slow} ms, then ${plain} ms`);
});

test('DRIFT_SINCE long ago makes each request slow', async (t) => {
  // 100,000 s at 2,000 turns each, which at 6 GHz are 0.2 s.
  const service = await serverFor(t, { DRIFT_SINCE: String(Date.now() - 100_000_000) });
  assert.ok((await timeMs(service)) > 50);
});

test('FIRST_FILE is made by the first of two and taken away by the second', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'faulty-'));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'first');
  await serverFor(t, { FIRST_FILE: file });
  assert.ok(fs.existsSync(file));
  await serverFor(t, { FIRST_FILE: file });
  assert.ok(!fs.existsSync(file));
});

test('BUSY_SHARE of a core is used without a request', async (t) => {
  const service = await serverFor(t, { BUSY_SHARE: '0.5' });
  const before = cpuMs(service);
  await new Promise((done) => setTimeout(done, 1000));
  assert.ok(cpuMs(service) - before > 100);
});

test('ORPHAN_S leaves a child behind', async () => {
  const seconds = `987${process.pid}`;
  const service = await startService(directory, { ORPHAN_S: seconds });
  const sleepers = () => fs.readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && sleeps(pid, seconds));
  assert.equal(await service.stop(), 0);
  const left = sleepers();
  for (const pid of left) process.kill(Number(pid));
  assert.equal(left.length, 1);
});

function sleeps(pid, seconds) {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1') === `sleep\0${seconds}\0`;
  } catch {
    return false; // gone meanwhile
  }
}

test('chunks.js sends the same body in chunks of any length', async (t) => {
  for (const [chunkBytes, chunks] of [['1', 16_384], ['4096', 4]]) {
    const service = await serviceFor(t, directory, { CHUNK_BYTES: chunkBytes }, 'chunks.js');
    assert.equal(await (await service.get('/')).text(), 'x'.repeat(16_384));
    const text = await talk(service.origin, REQUEST, (got) => got.endsWith('\r\n0\r\n\r\n'));
    assert.equal(text.match(/x\r\n/g).length, chunks);
  }
});
