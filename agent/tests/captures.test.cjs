'use strict';

// What the agent captures, and what it says where it cannot.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const http2 = require('node:http2');
const test = require('node:test');
const { setTimeout: wait } = require('node:timers/promises');
const { fixture, labFor, serviceFor, start, traces } = require('./fixtures/lab.cjs');

/** A service, and its agent. */
async function profiled(t, name = 'server.cjs') {
  const lab = await labFor(t);
  const service = await serviceFor(t, [fixture(name)], lab.env());
  return { lab, service, agent: await lab.agent(({ thread }) => thread === 0) };
}

/** Samples of a profile by the function that ran. */
function samplesByFunction({ nodes, samples }) {
  const names = new Map(nodes.map(({ id, callFrame }) => [id, callFrame.functionName]));
  const counts = {};
  for (const id of samples) counts[names.get(id)] = (counts[names.get(id)] ?? 0) + 1;
  return counts;
}

const values = (value) => (typeof value === 'object' ? Object.values(value).flatMap(values) : [value]);
const read = (file) => JSON.parse(fs.readFileSync(file, 'utf8'));

test('a CPU profile has what ran, over the whole window, and the answers in it', async (t) => {
  const { lab, service, agent } = await profiled(t);
  await service.get('/');
  const file = lab.file('a.cpuprofile');
  const armed = await agent.arm({ id: 7, kind: 'cpu', intervalUs: 100, file });
  assert.deepEqual([armed.type, armed.id], ['armed', 7]);
  const begunNs = process.hrtime.bigint();
  for (let i = 0; i < 20; i += 1) await service.get('/spin?n=20');
  const endedNs = process.hrtime.bigint();
  const captured = await agent.disarm(7);
  assert.deepEqual({ ...captured, startNs: 0, endNs: 0 }, {
    type: 'captured', id: 7, kind: 'cpu', requests: 20, startNs: 0, endNs: 0, file, bytes: fs.statSync(file).size,
  });
  const profile = read(file);
  assert.equal(profile.samples.length, profile.timeDeltas.length);
  const { spinning, ...others } = samplesByFunction(profile);
  for (const [name, count] of Object.entries(others)) assert.ok(name === '(idle)' || count < spinning, `${name}: ${count}, ${spinning}`);
  // All clocks are one, and the profile covers what it is said to cover.
  const [startUs, endUs] = [captured.startNs, captured.endNs].map((ns) => Number(ns) / 1000);
  assert.ok(profile.startTime <= startUs && endUs <= profile.endTime, JSON.stringify([profile.startTime, startUs, endUs, profile.endTime]));
  assert.ok(BigInt(captured.startNs) < begunNs && endedNs < BigInt(captured.endNs));
  assert.deepEqual(fs.readdirSync(lab.folder).sort(), ['a.cpuprofile', 'lab.sock']);
  assert.deepEqual(await traces(service), { listened: false, timers: [] });
});

test('lines of a console are written as ever while a profile is taken, and cost what they cost otherwise', async (t) => {
  const { lab, service, agent } = await profiled(t);
  const file = lab.file('a.cpuprofile');
  await service.get('/replace');
  await agent.arm({ id: 1, kind: 'cpu', intervalUs: 100, file });
  assert.deepEqual(JSON.parse(await service.get('/log?n=5000')), { usual: false, replaced: true });
  await agent.disarm(1);
  await service.line(/^of a request\n {2}line 0\n[^]*\n {2}line 4999\ndebug\n/m);
  // The way by the inspector, which notes a stack for each.
  assert.equal(samplesByFunction(read(file)).consoleCall, undefined);
  assert.deepEqual(JSON.parse(await service.get('/log?n=1')), { usual: true, replaced: true });
});

test('a heap profile has what lives still', async (t) => {
  const { lab, service, agent } = await profiled(t);
  const file = lab.file('a.heapprofile');
  await agent.arm({ id: 'h', kind: 'heap', file });
  await service.get('/garbage');
  await service.get('/keep?n=60000');
  const captured = await agent.disarm('h');
  assert.deepEqual([captured.type, captured.requests, captured.bytes], ['captured', 2, fs.statSync(file).size], captured.reason);
  const bytes = {};
  const walk = ({ callFrame, selfSize, children }, below) => {
    const names = [...below, callFrame.functionName];
    for (const name of new Set(names)) bytes[name] = (bytes[name] ?? 0) + selfSize;
    for (const child of children) walk(child, names);
  };
  const { head, samples } = read(file);
  walk(head, []);
  // Sixty megabytes, give or take: samples are drawn at random.
  assert.ok(bytes.keeping > 40e6 && bytes.keeping > bytes['(root)'] / 2, JSON.stringify(bytes));
  // More than goes into one piece of what is written.
  assert.ok(samples.length > 1000 && samples.every(({ size, nodeId }) => size > 0 && nodeId > 0));
});

test('counters tell of a loop that was held up, of collections, of a full pool, and of the answers', async (t) => {
  const { service, agent } = await profiled(t);
  await agent.arm({ id: 1, kind: 'counters' });
  await wait(200); // how late the first timer is, Node.js does not tell
  await service.get('/spin?n=300');
  await service.get('/garbage');
  await service.get('/pool');
  const { counters, requests, startNs, endNs, notes } = await agent.disarm(1);
  assert.equal(requests, 3);
  assert.equal(notes, undefined);
  assert.ok(counters.loop_delay_max_ns >= 200e6, JSON.stringify(counters));
  assert.ok(counters.loop_delay_p50_ns <= counters.loop_delay_p99_ns && counters.loop_delay_p99_ns <= counters.loop_delay_max_ns);
  assert.ok(counters.loop_active_ns >= 300e6);
  const window = Number(BigInt(endNs) - BigInt(startNs));
  const seen = counters.loop_active_ns + counters.loop_idle_ns;
  assert.ok(Math.abs(seen - window) < window / 4, `${seen} of ${window}`);
  assert.ok(counters.gc.scavenge.count > 0 && counters.gc.scavenge.max_ns <= counters.gc.scavenge.total_ns);
  // Twelve hashes of some 50 ms each before it, on four threads.
  assert.ok(counters.pool_wait.max_ns > 20e6, JSON.stringify(counters.pool_wait));
  assert.ok(counters.heap_used_bytes > 1e6 && counters.external_bytes > 0);
  assert.ok(values(counters).every((value) => Number.isSafeInteger(value) && value >= 0), JSON.stringify(counters));
  assert.deepEqual(await traces(service), { listened: false, timers: [] });
});

test('what cannot be captured is said, and does not hinder what can', async (t) => {
  const { lab, service, agent } = await profiled(t);
  const file = lab.file('a.cpuprofile');
  const cpu = { id: 1, kind: 'cpu', file };
  const refusals = [
    [{ ...cpu, kind: 'wall' }, /kind: "wall"/],
    [{ id: 1, file }, /kind: undefined/],
    [{ ...cpu, kind: 'constructor' }, /kind: "constructor"/],
    [{ ...cpu, intervalUs: 0 }, /intervalUs: 0 is not .* from 50 to 1000000/],
    [{ ...cpu, intervalUs: 1e12 }, /intervalUs/],
    [{ ...cpu, intervalUs: 'soon' }, /intervalUs: "soon"/],
    [{ ...cpu, file: 'a.cpuprofile' }, /file: "a.cpuprofile" is not an absolute path/],
    [{ id: 1, kind: 'heap' }, /file: undefined/],
  ];
  for (const [order, reason] of refusals) {
    const answer = await agent.arm(order);
    assert.equal(answer.type, 'failed');
    assert.match(answer.reason, reason);
  }
  assert.match((await agent.disarm(1)).reason, /nothing is armed/);

  await agent.arm({ ...cpu, file: lab.file('missing/a.cpuprofile') });
  assert.match((await agent.arm({ ...cpu, id: 2 })).reason, /already armed: cpu, id 1/);
  assert.match((await agent.disarm(2)).reason, /nothing is armed/);
  const lost = await agent.disarm(1);
  assert.deepEqual([lost.type, lost.id, lost.kind], ['failed', 1, 'cpu']);
  assert.match(lost.reason, /ENOENT.*missing/);

  agent.socket.write('no JSON\n"text"\nnull\n{"type":"later"}\n');
  await agent.arm({ id: 3, kind: 'counters' });
  assert.equal((await agent.disarm(3)).type, 'captured');
  assert.equal(await service.get('/'), 'well');
});

test('a Node.js that is too old says so, and serves', async (t) => {
  const lab = await labFor(t);
  // It says of itself what Node.js 16 says; what that lacks besides, only that can show.
  const old = lab.file('old.cjs');
  fs.writeFileSync(old, "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '16.20.2' } });");
  const env = lab.env();
  const service = await serviceFor(t, [fixture('server.cjs')], { ...env, NODE_OPTIONS: `--require ${old} ${env.NODE_OPTIONS}` });
  const agent = await lab.agent();
  for (const kind of ['cpu', 'heap', 'counters']) {
    const { type, reason } = await agent.arm({ id: kind, kind, file: lab.file('a.profile') });
    assert.deepEqual([type, reason], ['failed', 'Node.js 16.20.2 is too old: at least 18 is needed']);
  }
  await service.get('/');
});

test('a worker thread is profiled apart from its main thread', async (t) => {
  const { lab, service, agent } = await profiled(t, 'threads.cjs');
  const thread = await lab.agent((hello) => hello.thread > 0);
  const files = [lab.file('main.cpuprofile'), lab.file('thread.cpuprofile')];
  await agent.arm({ id: 1, kind: 'cpu', file: files[0] });
  await thread.arm({ id: 2, kind: 'cpu', file: files[1] });
  await service.get('/spin?n=500');
  const [inMain, inThread] = await Promise.all([agent.disarm(1), thread.disarm(2)]);
  assert.deepEqual([inMain.requests, inThread.requests], [1, 0]);
  const ran = files.map((file) => read(file).nodes.map(({ callFrame }) => callFrame.functionName));
  assert.deepEqual(ran.map((names) => ['spinning', 'inThread'].filter((name) => names.includes(name))), [['spinning'], ['inThread']]);
});

test('workers count their own answers, and one that dies while armed takes no other with it', async (t) => {
  const lab = await labFor(t);
  const service = start(t, [fixture('cluster.cjs')], lab.env());
  await lab.agent();
  service.child.stdin.write('go\n');
  const workers = await Promise.all([1, 2].map((id) => lab.agent(({ clusterId }) => clusterId === id)));
  const [, port] = await service.line(/listening (\d+)[^]*listening/);
  const files = workers.map(({ hello }) => lab.file(`${hello.clusterId}.cpuprofile`));
  for (const [index, worker] of workers.entries()) await worker.arm({ id: 1, kind: 'cpu', file: files[index] });
  process.kill(workers[0].hello.pid, 'SIGKILL');
  await workers[0].closed;
  // From when the primary knows of it, it deals it no connection.
  while (fs.existsSync(`/proc/${workers[0].hello.pid}`)) await wait(20);
  for (let i = 0; i < 5; i += 1) await (await fetch(`http://127.0.0.1:${port}/spin?n=50`)).text();
  const captured = await workers[1].disarm(1);
  assert.equal(captured.requests, 5);
  assert.ok(read(files[1]).nodes.some(({ callFrame }) => callFrame.functionName === 'spinning'));
  assert.equal(fs.existsSync(files[0]), false);
});

test('requests over HTTP/2 are counted, or said not to be', async (t) => {
  const lab = await labFor(t);
  const service = start(t, ['-e', `
    const server = require('node:http2').createServer((request, response) => response.end('well'));
    server.listen(0, '127.0.0.1', () => console.log('listening', server.address().port));
  `], lab.env());
  const [, port] = await service.line(/listening (\d+)/);
  const agent = await lab.agent();
  await agent.arm({ id: 1, kind: 'counters' });
  const client = http2.connect(`http://127.0.0.1:${port}`);
  t.after(() => client.destroy());
  for (let i = 0; i < 3; i += 1) {
    await new Promise((resolve, reject) => {
      client.request({ ':path': '/' }).on('error', reject).on('close', resolve).resume().end();
    });
  }
  const { requests, notes } = await agent.disarm(1);
  if (requests !== 3) assert.deepEqual([requests, notes.length, /HTTP\/2/.test(notes[0])], [0, 1, true]);
});
