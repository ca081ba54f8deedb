// Proofload's agent. NODE_OPTIONS=--require loads it before an unmodified service, in each of its processes and worker threads. It
// connects to the socket in PROOFLOAD_AGENT, reports which process it is in, and captures what the lab asks for. README.md has the
// protocol.
//
// It must never break the service or print anything. Without its socket it does nothing, and an error in here ends the agent and nothing
// else. Unarmed it has one connection, which keeps no process alive, and no timer. It takes what it needs when it is loaded, because
// services replace globals. Its syntax is that of Node.js 12, and it names modules without a prefix: a Node.js that is too old to be
// profiled must still start its service and send a hello.
'use strict';

// A service that looks through its modules must find only its own.
delete require.cache[__filename];
const address = process.env.PROOFLOAD_AGENT;
const MARK = Symbol.for('proofload.agent');
// Once for each thread, also where it is required twice. No socket has a longer path. (A CommonJS module is the body of a function.)
if (!address || address.length > 107 || process[MARK]) return;

const proc = process;
const { Boolean, Error, Number, String } = globalThis;
const { parse, stringify } = JSON;
const { max, random, round } = Math;
const { defineProperty, keys } = Object;
const { isArray } = Array;
const { memoryUsage, hrtime: { bigint: now } } = proc;
const { setImmediate, setTimeout, clearTimeout } = require('timers');
const { closeSync, fstatSync, openSync, readlinkSync, realpathSync, renameSync, unlinkSync, writeFileSync } = require('fs');
const { basename, isAbsolute } = require('path');
const load = (name) => attempt(() => require(name)) || null;
const net = load('net');
const channels = load('diagnostics_channel');
const inspector = load('inspector');
const { isMainThread, threadId } = load('worker_threads') || { isMainThread: true, threadId: 0 };
const { Console } = load('console') || {};
const { performance, PerformanceObserver, monitorEventLoopDelay } = load('perf_hooks') || {};
const loopUse = attempt(() => performance.eventLoopUtilization.bind(performance));
const { node, v8, uv, openssl } = proc.versions;
const scriptAtStart = proc.argv[1];
// The console and its methods before the service replaces any.
const { console: shown } = globalThis;
const methods = { ...shown };

const OLDEST_MAJOR = 18;
// Below 50 µs V8 does little but sample, and above a second there are too few samples.
const INTERVAL_US = { least: 50, usual: 1000, most: 1000000 };
// Bytes allocated between two samples of the heap, on average: V8's default.
const HEAP_INTERVAL_BYTES = 32768;
const LOOP_RESOLUTION_MS = 20;
// A small task for the thread pool now and then, at random times so that it is not in step with anything.
const PROBE_MS = { least: 20, spread: 60 };
const COLLECTIONS = new Map([[1, 'scavenge'], [4, 'mark_sweep_compact'], [8, 'incremental'], [16, 'weak_callbacks']]);
const RESPONSES = ['http.server.response.finish', 'http2.server.stream.finish'];
const LINE_CHARS_MAX = 1 << 16;
// Elements of a profile's list that become text at once, and about how much is written between two turns of the event loop.
const PIECE = 1000;
const TURN_CHARS = 1 << 18;
// Programs that start services and are not services. PM2's containers are not among them: services run in them.
const TOOL = new RegExp(
  '/(npm/bin/np[mx]-cli\\.js|(yarn/bin/yarn|yarn/lib/cli)\\.js|\\.yarn/releases/yarn-[^/]+\\.c?js|corepack/dist/[^/]+\\.js' +
    '|pnpm/(bin|dist)/pn(pm|px)\\.[cm]?js|pm2/(bin/pm2(-dev|-docker|-runtime)?|lib/Daemon\\.js|lib/binaries/[^/]+\\.js))$',
);
const PM2_CONTAINER = /\/pm2\/lib\/ProcessContainer(Fork)?\.js$/;

let socket = null;
let inode; // the socket's, which identifies it
let pending = ''; // the line that has begun to arrive
let reported = null; // the role that the lab knows
let [armed, leaveForks] = [null, null];

/** The result of `work`, or of `otherwise` where it throws: undefined by default. */
function attempt(work, otherwise = () => undefined) {
  try {
    return work();
  } catch (error) {
    return otherwise(error);
  }
}

/** `work` as a callback: an error in it ends the agent. */
const guarded = (work) => (...parameters) => { attempt(() => work(...parameters), drop); };

function connect() {
  socket = net.connect({ path: address });
  socket.unref();
  socket.setEncoding('utf8');
  socket.on('error', () => {}); // 'close' follows
  socket.on('close', guarded(drop));
  socket.on('data', guarded(received));
  socket.on('connect', guarded(() => {
    inode = fstatSync(socket._handle.fd).ino;
    send(hello());
  }));
}

/** Whether the descriptor is still the socket's: a service may have closed it, and may have another file by that number. */
function isOurs() {
  return inode === undefined || attempt(() => fstatSync(socket._handle.fd).ino) === inode;
}

function send(message) {
  if (socket === null) return;
  if (isOurs()) socket.write(`${stringify(message)}\n`);
  else drop();
}

/** Ends the agent. */
function drop() {
  if (armed !== null) attempt(() => release().cancel());
  if (leaveForks !== null) attempt(leaveForks);
  const left = socket;
  if (left === null) return;
  // If the descriptor is the service's by now, closing it would break the service. The agent can only stop reading.
  const close = isOurs() ? () => left.destroy() : () => left._handle.readStop();
  socket = null;
  attempt(close);
}

function received(text) {
  if (socket === null) return;
  const lines = (pending + text).split('\n');
  pending = lines.pop();
  if (pending.length > LINE_CHARS_MAX || !isOurs()) drop();
  else lines.forEach(execute);
}

function execute(line) {
  const order = attempt(() => parse(line)) || {};
  reportRole();
  if (order.type === 'arm') arm(order);
  if (order.type === 'disarm') disarm(order);
}

function hello() {
  const { pid, ppid, env } = proc;
  reported = role();
  return {
    v: 1, type: 'hello', pid, ppid, thread: threadId, role: reported,
    threadId: attempt(() => Number(basename(readlinkSync('/proc/thread-self')))) || null,
    clusterId: (reported === 'worker' && attempt(() => require('cluster').worker.id)) || null,
    pm2: (env.pm_id !== undefined && env.name) || null,
    versions: { node, v8, uv, openssl }, ...settings(), main: main(),
  };
}

/** The process's settings at this moment: a service may set them itself, or read them from a file. */
function settings() {
  const { NODE_ENV: nodeEnv = null, UV_THREADPOOL_SIZE: uvThreadpoolSize = null } = proc.env;
  return { nodeEnv, uvThreadpoolSize };
}

/** The file that the process runs. PM2 runs a file of its own, which runs that of the service. */
function main() {
  const script = proc.argv[1];
  return (PM2_CONTAINER.test(script) && proc.env.pm_exec_path) || script || null;
}

function role() {
  if (!isMainThread) return 'thread';
  // Corepack changes argv once it runs.
  if (reported === 'tool' || isTool(scriptAtStart) || isTool(main())) return 'tool';
  if (isChild()) return 'worker';
  return reported === 'primary' || isPrimary() ? 'primary' : 'service';
}

/** Whether Node.js has loaded this module of its own. Loading `cluster` would fix its policy before the service can set it. */
function hasLoaded(name) {
  return isArray(proc.moduleLoadList) && proc.moduleLoadList.includes(`NativeModule ${name}`);
}

const isChild = () => hasLoaded('internal/cluster/child');
const isPrimary = () => hasLoaded('internal/cluster/primary') && keys(require('cluster').workers).length > 0;
const isTool = (script) => Boolean(script) && (TOOL.test(script) || TOOL.test(attempt(() => realpathSync(script))));

function reportRole() {
  if (reported !== 'service' || role() === reported) return;
  reported = role();
  if (leaveForks !== null) leaveForks();
  send({ type: 'role', role: reported });
}

/** Listens to a diagnostics channel of Node.js. Returns what ends that. */
function listen(name, listener) {
  const channel = channels.channel(name);
  channel.subscribe(listener);
  return () => channel.unsubscribe(listener);
}

function arm(order) {
  const { id, kind, file } = order;
  try {
    const refusal = refused(order);
    if (refusal !== null) throw new Error(refusal);
    const capture = kind === 'counters' ? counters() : profile(order);
    armed = { id, kind, file, capture, responses: countResponses(), startNs: now() };
    send({ type: 'armed', id, ...settings() });
  } catch (error) {
    failed(id, kind, error);
  }
}

function refused({ kind, file, intervalUs = INTERVAL_US.usual }) {
  const { least, most } = INTERVAL_US;
  if (reported === 'tool') return 'this process starts services and is not one';
  if (parseInt(node, 10) < OLDEST_MAJOR) return `Node.js ${node} is too old: at least ${OLDEST_MAJOR} is needed`;
  if (armed !== null) return `already armed: ${armed.kind}, id ${stringify(armed.id)}`;
  if (!['cpu', 'heap', 'counters'].includes(kind)) return `kind: ${stringify(kind)} is none of cpu, heap, counters`;
  if (kind === 'counters') return null;
  if (typeof file !== 'string' || !isAbsolute(file)) return `file: ${stringify(file)} is not an absolute path`;
  if (kind === 'heap' || (Number.isInteger(intervalUs) && intervalUs >= least && intervalUs <= most)) return null;
  return `intervalUs: ${stringify(intervalUs)} is not a whole number from ${least} to ${most}`;
}

function failed(id = null, kind = null, error) {
  send({ type: 'failed', id, kind, reason: attempt(() => String(error.message)) || 'unknown' });
}

function disarm({ id }) {
  if (armed === null || armed.id !== id) return failed(id, null, new Error('nothing is armed with this id'));
  const { kind, file, startNs, responses } = armed;
  const message = { type: 'captured', id, kind, ...responses.counted(), startNs: String(startNs), endNs: String(now()) };
  const done = guarded((error, result) => (error ? failed(id, kind, error) : send({ ...message, ...result })));
  return attempt(() => release().stop(done, file), done);
}

/** Ends what an armed agent has except for its capture, which the caller stops or cancels. */
function release() {
  const { capture, responses } = armed;
  armed = null;
  responses.stop();
  return capture;
}

/** Counts responses by diagnostics channels, which cost nothing while nobody listens. */
function countResponses() {
  const counts = RESPONSES.map(() => 0);
  const leave = RESPONSES.map((name, index) => listen(name, () => { counts[index] += 1; }));
  const counted = () => {
    const requests = counts[0] + counts[1];
    if (counts[1] > 0 || !hasLoaded('internal/http2/core')) return { requests };
    return { requests, notes: [`requests over HTTP/2, if there were any, are not counted: Node.js ${node} does not report them`] };
  };
  return { counted, stop: () => leave.forEach((end) => end()) };
}

/** A profile by V8, of this thread only. */
function profile({ kind, intervalUs = INTERVAL_US.usual }) {
  if (inspector === null) throw new Error('this Node.js was built without its inspector');
  const session = new inspector.Session();
  const giveConsoleBack = takeConsole();
  const cancel = () => [giveConsoleBack, () => session.disconnect()].forEach((end) => end());
  const start = kind === 'cpu'
    ? [['Profiler.enable'], ['Profiler.setSamplingInterval', { interval: intervalUs }], ['Profiler.start']]
    : [['HeapProfiler.enable'], ['HeapProfiler.startSampling', { samplingInterval: HEAP_INTERVAL_BYTES }]];
  const stop = (done, file) => {
    try {
      write(file, post(session, kind === 'cpu' ? 'Profiler.stop' : 'HeapProfiler.stopSampling').profile, done);
    } finally {
      cancel();
    }
  };
  const begin = () => [session.connect(), start.forEach(([method, parameters]) => post(session, method, parameters))];
  attempt(begin, (error) => {
    cancel();
    throw error;
  });
  return { stop, cancel };
}

/**
 * Gives the service's console Node.js's own methods. Returns what undoes that. While a session is connected the usual methods call V8's
 * console first, which takes the stack, and that takes longer than writing the line. Methods that the service replaced stay.
 */
function takeConsole() {
  const plain = keys(methods).filter((name) => Console.prototype[name]).map((name) => [name, Console.prototype[name].bind(shown)]);
  const swap = (name, from, to) => attempt(() => { if (shown[name] === from) shown[name] = to; });
  plain.forEach(([name, method]) => swap(name, methods[name], method));
  return () => plain.forEach(([name, method]) => swap(name, method, methods[name]));
}

/** Within one thread the inspector responds before `post` returns. */
function post(session, method, parameters = {}) {
  let [error, result] = [new Error(`${method} got no response`)];
  session.post(method, parameters, (...response) => { [error, result] = response; });
  if (error) throw error;
  return result;
}

/** Writes a profile, a part of it in each turn of the event loop. The file gets its name once it is whole. */
function write(file, whole, done) {
  const part = `${file}.${proc.pid}-${threadId}.part`;
  const descriptor = openSync(part, 'w', 0o600);
  const rest = pieces(whole);
  const turn = () => {
    try {
      if (socket === null) throw new Error('the lab is gone');
      let [text, piece] = ['', rest.next()];
      for (; !piece.done && text.length < TURN_CHARS; piece = rest.next()) text += piece.value;
      writeFileSync(descriptor, text + (piece.value || ''));
      if (!piece.done) return setImmediate(turn);
      const bytes = fstatSync(descriptor).size;
      renameSync(part, file);
      closeSync(descriptor);
      return done(null, { file, bytes });
    } catch (error) {
      attempt(() => unlinkSync(part));
      attempt(() => closeSync(descriptor));
      return done(error);
    }
  };
  turn();
}

/** The JSON text of an object, its lists in pieces: V8 may not allow the text of a profile in one string. */
function* pieces(object) {
  let lead = '{';
  for (const key of keys(object)) {
    const value = object[key];
    yield `${lead}${stringify(key)}:${isArray(value) ? '[' : stringify(value)}`;
    lead = isArray(value) ? '],' : ',';
    for (let at = 0; isArray(value) && at < value.length; at += PIECE) {
      yield (at > 0 ? ',' : '') + stringify(value.slice(at, at + PIECE)).slice(1, -1);
    }
  }
  yield lead === '],' ? ']}' : '}';
}

function counters() {
  const delay = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  // Node.js measures the time from one timer to the next, not how late the timer was.
  const late = (ns) => max(0, round(ns) - LOOP_RESOLUTION_MS * 1e6) || 0;
  const [collections, pool, before] = [countCollections(), probePool(), loopUse()];
  delay.enable();
  const cancel = () => [() => delay.disable(), collections.stop, pool.stop].forEach((end) => end());
  const stop = (done) => {
    const [{ active, idle }, { heapUsed, external }] = [loopUse(before), memoryUsage()];
    const measured = {
      loop_active_ns: round(active * 1e6), loop_idle_ns: round(idle * 1e6),
      loop_delay_mean_ns: late(delay.mean), loop_delay_max_ns: late(delay.max),
      loop_delay_p50_ns: late(delay.percentile(50)), loop_delay_p99_ns: late(delay.percentile(99)),
      heap_used_bytes: heapUsed, external_bytes: external,
    };
    // Node.js reports a collection in the next turn of the event loop.
    setImmediate(guarded(() => {
      cancel();
      done(null, { counters: { ...measured, gc: collections.byKind, pool_wait: pool.waits() } });
    }));
  };
  return { stop, cancel };
}

function add(pauses, ns) {
  const { count, total_ns, max_ns } = pauses || { count: 0, total_ns: 0, max_ns: 0 };
  return { count: count + 1, total_ns: total_ns + ns, max_ns: max(max_ns, ns) };
}

function countCollections() {
  const byKind = {};
  const take = (entries) => entries.forEach(({ duration, detail }) => {
    const name = COLLECTIONS.get(detail.kind) || `kind_${detail.kind}`;
    byKind[name] = add(byKind[name], round(duration * 1e6));
  });
  const observer = new PerformanceObserver(guarded((list) => take(list.getEntries())));
  observer.observe({ entryTypes: ['gc'] });
  return { byKind, stop: () => [take(observer.takeRecords()), observer.disconnect()] };
}

/**
 * How long small tasks waited for the thread pool. A result waits for the event loop too, so the time counts from the second turn of the
 * loop after the task was started: a result that is there by then did not wait for the pool.
 */
function probePool() {
  const { randomBytes } = load('crypto') || {};
  let [waits, timer, asked] = [null, null, null];
  const finish = () => {
    if (asked !== null) waits = add(waits, asked.sinceNs === null ? 0 : Number(now() - asked.sinceNs));
    asked = null;
  };
  const ask = guarded(() => {
    const task = { sinceNs: null };
    asked = task;
    setImmediate(() => setImmediate(() => { task.sinceNs = now(); }));
    randomBytes(1, guarded(() => {
      if (asked !== task) return;
      finish();
      wait();
    }));
  });
  const wait = () => { timer = setTimeout(ask, PROBE_MS.least + random() * PROBE_MS.spread).unref(); };
  // A task that still waits has waited at least this long.
  const stop = () => [clearTimeout(timer), finish()];
  if (randomBytes) wait();
  return { waits: () => waits, stop };
}

attempt(() => {
  defineProperty(proc, MARK, { value: true });
  connect();
  // Node.js 20 reports each child process that is about to start. The first one of a cluster makes this process a primary.
  if (isMainThread && !isChild()) leaveForks = listen('child_process', () => setImmediate(guarded(reportRole)));
});
