// Stand-in for Proofload's agent: as much of its protocol as tests of the other side need. It must not be shipped.
'use strict';
const net = require('node:net');
const fs = require('node:fs');
const inspector = require('node:inspector');
const channels = require('node:diagnostics_channel');
const cluster = require('node:cluster');
const { threadId, isMainThread } = require('node:worker_threads');
const { performance } = require('node:perf_hooks');

const MARK = Symbol.for('proofload.agent');

function role() {
  if (!isMainThread) return 'thread';
  if (/(pm2|npm-cli|Daemon)\.?j?s?$/.test(process.argv[1] ?? '')) return 'tool';
  return cluster.isWorker ? 'worker' : 'service';
}

function start(address) {
  const socket = net.connect({ path: address }).unref();
  const say = (message) => socket.write(`${JSON.stringify(message)}\n`);
  let armed = null;
  let requests = 0;
  let pending = '';
  channels.subscribe('http.server.response.finish', () => {
    requests += 1;
  });
  socket.on('error', () => {});
  socket.on('connect', () => {
    const { NODE_ENV: nodeEnv = null, UV_THREADPOOL_SIZE: uvThreadpoolSize = null } = process.env;
    const { node, v8, uv, openssl } = process.versions;
    const versions = { node, v8, uv, openssl };
    const [thread, main] = [threadId, process.argv[1] ?? null];
    say({ v: 1, type: 'hello', pid: process.pid, thread, role: role(), versions, nodeEnv, uvThreadpoolSize, main });
  });
  setTimeout(() => {
    if (Object.keys(cluster.workers ?? {}).length > 0) say({ type: 'role', role: 'primary' });
  }, 100).unref();
  socket.on('data', (text) => {
    const lines = (pending + text).split('\n');
    pending = lines.pop();
    lines.forEach((line) => obey(JSON.parse(line)));
  });

  function obey(order) {
    const { id } = order;
    if (order.type === 'arm') {
      const session = order.kind === 'counters' ? null : new inspector.Session();
      session?.connect();
      if (order.kind === 'cpu') session.post('Profiler.enable', () => session.post('Profiler.start'));
      if (order.kind === 'heap') session.post('HeapProfiler.startSampling');
      armed = { ...order, session, requests, loop: performance.eventLoopUtilization() };
      say({ type: 'armed', id });
    } else if (armed?.id === id) {
      const { kind, file, session, requests: before, loop } = armed;
      armed = null;
      const told = { type: 'captured', id, kind, requests: requests - before };
      if (session === null) say({ ...told, counters: counters(loop) });
      else {
        session.post(kind === 'cpu' ? 'Profiler.stop' : 'HeapProfiler.stopSampling', (_, { profile }) => {
          fs.writeFileSync(file, JSON.stringify(profile));
          say({ ...told, file, bytes: fs.statSync(file).size });
        });
        session.disconnect();
      }
    }
  }
}

function counters(before) {
  const { active, idle } = performance.eventLoopUtilization(before);
  const delay = { loop_delay_mean_ns: 0, loop_delay_p50_ns: 0, loop_delay_p99_ns: 0, loop_delay_max_ns: 0 };
  const [loop_active_ns, loop_idle_ns] = [active, idle].map((ms) => Math.round(ms * 1e6));
  const { heapUsed: heap_used_bytes, external: external_bytes } = process.memoryUsage();
  return { loop_active_ns, loop_idle_ns, ...delay, gc: {}, pool_wait: null, heap_used_bytes, external_bytes };
}

if (process.env.PROOFLOAD_AGENT && !process[MARK]) {
  process[MARK] = true;
  start(process.env.PROOFLOAD_AGENT);
}
