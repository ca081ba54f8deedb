'use strict';

// The faults, each switched on by a variable. It must not listen or respond.
//
//   BODY_BYTES      length of the response; 1,000 by default
//   LETTER          what the response consists of; x by default
//   ERROR_SHARE     share of the responses with status 500, at random
//   DELAY_MS        time that each response waits without using a processor
//   DELAY_WORKER    the worker of a cluster whose responses wait, by its number from 1; all by default
//   CLOSE_AFTER     requests after which a connection is closed
//   BACKLOG         connections that may wait for accept()
//   LEAK_BYTES      what the process keeps of each request
//   SLOW_REQUESTS   so many of its first requests cost more
//   DRIFT_SINCE     time in milliseconds since 1970; from then on requests cost more with every second
//   FIRST_FILE      of two processes the first is slow and makes this file; the second removes it
//   BUSY_SHARE      share of a core that it uses without any request
//   ORPHAN_S        seconds that a child in a session of its own sleeps, also after this process has ended
//   CRASH_AFTER_MS  time from its first request until worker 1 of a cluster ends

const { spawn } = require('node:child_process');
const cluster = require('node:cluster');
const fs = require('node:fs');
const { turn } = require('../spin');

// 50,000 turns take about 0.1 ms, a few times what a request costs otherwise.
const SLOW_TURNS = 50_000;
const FIRST_TURNS = 20_000;
const DRIFT_TURNS_PER_S = 2000;
const BUSY_EVERY_MS = 100;

const number = (name, otherwise = 0) => Number(process.env[name] ?? otherwise);
const waits = process.env.DELAY_WORKER === undefined || cluster.worker?.id === number('DELAY_WORKER');
const delayMs = waits ? number('DELAY_MS') : 0;
const errorShare = number('ERROR_SHARE');
const leakBytes = number('LEAK_BYTES');
const slowRequests = number('SLOW_REQUESTS');
const driftSince = number('DRIFT_SINCE');
const crashAfterMs = number('CRASH_AFTER_MS');
const closeAfter = number('CLOSE_AFTER');
const listening = process.env.BACKLOG ? { backlog: number('BACKLOG') } : {};
const body = Buffer.alloc(number('BODY_BYTES', 1000), process.env.LETTER ?? 'x');
const isFirst = process.env.FIRST_FILE !== undefined && comesFirst(process.env.FIRST_FILE);

const kept = [];
const requestsOf = new WeakMap();
let requests = 0;

/** The faults that need no request. */
function begin() {
  const busyMs = number('BUSY_SHARE') * BUSY_EVERY_MS;
  if (busyMs > 0) setInterval(() => spinUntil(performance.now() + busyMs), BUSY_EVERY_MS).unref();
  if (process.env.ORPHAN_S) spawn('sleep', [process.env.ORPHAN_S], { detached: true, stdio: 'ignore' }).unref();
}

/** The faults of each request. */
function onRequest() {
  requests += 1;
  // Filled, because the kernel maps no page before it is written.
  if (leakBytes > 0) kept.push(Buffer.alloc(leakBytes, 1));
  const crashes = requests === 1 && crashAfterMs > 0 && cluster.worker?.id === 1;
  if (crashes) setTimeout(() => process.exit(1), crashAfterMs).unref();
  const slow = requests <= slowRequests ? SLOW_TURNS : 0;
  const drifted = driftSince > 0 ? ((Date.now() - driftSince) / 1000) * DRIFT_TURNS_PER_S : 0;
  turn(slow + drifted + (isFirst ? FIRST_TURNS : 0));
}

/** Status, headers and body of the next response on a connection. */
function responseOn(socket) {
  const headers = { 'Content-Type': 'text/plain', 'Content-Length': body.length };
  const count = (requestsOf.get(socket) ?? 0) + 1;
  if (closeAfter > 0) requestsOf.set(socket, count);
  if (count === closeAfter) headers.Connection = 'close';
  return { status: Math.random() < errorShare ? 500 : 200, headers, body };
}

function comesFirst(file) {
  try {
    fs.writeFileSync(file, '', { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    fs.unlinkSync(file);
    return false;
  }
}

function spinUntil(end) {
  while (performance.now() < end) turn(1000);
}

module.exports = { responseOn, begin, delayMs, listening, onRequest };
