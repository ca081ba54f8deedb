'use strict';

// What is planted must be there: a difference that is not would pass for one that was not found. Times have lower
// limits, which a slow machine keeps too; an upper one holds for the fastest of many.

const assert = require('node:assert/strict');
const path = require('node:path');
const test = require('node:test');
const { serviceFor } = require('../../tests/service');

const EARLY_MS = 5; // a timer may fire that much before its time
const directory = path.join(__dirname, '..');

async function timeMs(service) {
  const begun = performance.now();
  const response = await service.get('/');
  assert.equal(response.status, 200);
  assert.equal((await response.json()).length, 20);
  return performance.now() - begun;
}

async function rssMb(service) {
  return (await (await service.get('/healthz')).json()).rssMb;
}

test('SPIN takes its time from each request', async (t) => {
  // Each turn waits for the one before it through six operations: at 6 GHz these are 0.1 s.
  const service = await serviceFor(t, directory, { SPIN: '100000000' });
  for (let i = 0; i < 3; i += 1) assert.ok((await timeMs(service)) > 50);
});

test('costs multiply, and of EITHER_ only the largest counts', async (t) => {
  // 1.5 * 2 = 3 times the cost: two times more than without, by round trips of at least 0.1 s in all.
  const service = await serviceFor(t, directory, { WORK_ALIKE: '500000', COST_A: '1.5', EITHER_A: '2', EITHER_B: '2' });
  assert.ok((await timeMs(service)) > 50);
  const plain = await serviceFor(t, directory, { WORK_ALIKE: '500000000', COST_A: '1', EITHER_A: '1' });
  assert.ok((await timeMs(plain)) < 5000);
});

test('DELAY_MS makes every answer wait', async (t) => {
  const service = await serviceFor(t, directory, { DELAY_MS: '100' });
  for (let i = 0; i < 3; i += 1) assert.ok((await timeMs(service)) >= 100 - EARLY_MS);
});

test('DISTRIBUTION=exponential draws each wait anew, with DELAY_MS as its mean', async (t) => {
  const service = await serviceFor(t, directory, { DELAY_MS: '200', DISTRIBUTION: 'exponential' });
  const times = await Promise.all(Array.from({ length: 40 }, () => timeMs(service)));
  // By chance none of 40 would be longer than the mean once in 10^8 times; equal waits all would.
  const longer = times.filter((ms) => ms >= 200 - EARLY_MS).length;
  assert.ok(longer > 0 && longer < times.length, `${longer} of ${times.length} were longer than the mean`);
});

test('TAIL_SHARE of the answers wait TAIL_MS, and the others do not', async (t) => {
  const tailMs = 1000;
  const service = await serviceFor(t, directory, { TAIL_SHARE: '0.5', TAIL_MS: String(tailMs) });
  const times = await Promise.all(Array.from({ length: 40 }, () => timeMs(service)));
  const waited = times.filter((ms) => ms >= tailMs - EARLY_MS).length;
  assert.ok(waited > 0 && waited < times.length, `${waited} of ${times.length} waited`);
});

test('COST_TAIL halves TAIL_MS', async (t) => {
  const service = await serviceFor(t, directory, { TAIL_SHARE: '1', TAIL_MS: '1000', COST_TAIL: '1.1' });
  const times = await Promise.all(Array.from({ length: 10 }, () => timeMs(service)));
  assert.ok(Math.min(...times) >= 500 - EARLY_MS && Math.min(...times) < 1000, `${times} ms`);
});

test('HOLD_MB is memory that the process really has', async (t) => {
  const [plain, holding] = [await serviceFor(t, directory), await serviceFor(t, directory, { HOLD_MB: '200' })];
  assert.ok((await rssMb(holding)) - (await rssMb(plain)) > 150);
});
