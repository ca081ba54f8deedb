'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const test = require('node:test');
const { setTimeout: pause } = require('node:timers/promises');
const { startService, serviceFor } = require('../../tests/service');
const { dataFolder, directory } = require('../../tests/json-data');

const env = { DATA: dataFolder(), WORKERS: '3' };

function workersOf(service) {
  return fs.readFileSync(`/proc/${service.pid}/task/${service.pid}/children`, 'utf8').trim().split(' ').map(Number);
}

async function until(isSo) {
  while (!isSo()) await pause(10);
}

test('a cluster has as many workers as asked for, and one that dies is replaced', async (t) => {
  const service = await serviceFor(t, directory, env, 'bin/www');
  const before = workersOf(service);
  assert.equal(before.length, 3);
  for (let others = 2; others > 0; others -= 1) assert.match(await service.nextLine(), /listening/);
  // A worker says so to us and to the cluster, and the cluster must have heard it, or it takes it for one that cannot serve.
  await pause(500);
  process.kill(before[0], 'SIGKILL');
  await until(() => workersOf(service).length === 3 && !workersOf(service).includes(before[0]));
  assert.equal((await service.get('/data/small/disk/promise/1')).status, 200);
});

test('SIGTERM to every process at once ends them all cleanly', async () => {
  const service = await startService(directory, env, 'bin/www');
  const workers = workersOf(service);
  for (const pid of workers) process.kill(pid, 'SIGTERM');
  assert.equal(await service.stop(), 0);
  for (const pid of workers) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
});

test('workers that cannot serve end the cluster, with what is wrong', async () => {
  await assert.rejects(startService(directory, { ...env, WORKERS: '0' }, 'bin/www'), /ended without announcing/);
  await assert.rejects(startService(directory, { ...env, HOST: '192.0.2.1' }, 'bin/www'), /ended without announcing/);
});
