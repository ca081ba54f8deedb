'use strict';

// An Express service into which a difference can be planted, for tests of whether it is found:
//   WORK        JSON round trips that each request costs beside its work; 4.5 are 4 or 5
//   WORK_ALIKE  round trips that cost as much as the request without them
//   COST_*      each makes a request cost so many times as much CPU, by such round trips; of EITHER_* only the largest does
//   COST_TAIL   such a cost, which also halves TAIL_MS
//   SPIN        turns of a loop that each request costs beside its work
//   DELAY_MS    time that each response waits without using a processor
//   DISTRIBUTION of that wait: "exponential" draws each anew, with this mean; "constant" (the default): all are the same
//   TAIL_SHARE  share of the responses that wait TAIL_MS, at random
//   HOLD_MB     memory that the process holds from its start
//   ORDERS      entries of a response, 20 at first
//   WORKERS     processes that serve, as a cluster if more than 1

const cluster = require('node:cluster');
const http = require('node:http');
const express = require('express');
const { leavePrimary, serve } = require('../serving');
const { spun, turn } = require('../spin');

const number = (name) => Number(process.env[name] ?? 0);
const factors = (prefix) =>
  Object.keys(process.env).filter((name) => name.startsWith(prefix)).map(number);
const cost = [Math.max(1, ...factors('EITHER_')), ...factors('COST_')].reduce((all, one) => all * one);
const work = number('WORK') + (cost - 1) * number('WORK_ALIKE');
const spin = number('SPIN');
const delayMs = number('DELAY_MS');
const { DISTRIBUTION = 'constant' } = process.env;
if (!['constant', 'exponential'].includes(DISTRIBUTION)) throw new RangeError(`DISTRIBUTION: constant or exponential, not ${DISTRIBUTION}`);
const drawn = DISTRIBUTION === 'exponential';
const tailShare = number('TAIL_SHARE');
const tailMs = number('COST_TAIL') > 1 ? number('TAIL_MS') / 2 : number('TAIL_MS');

// Filled, because the kernel maps no page before it is written.
const held = Array.from({ length: number('HOLD_MB') }, () => Buffer.alloc(1 << 20, 1));

const orders = Array.from({ length: number('ORDERS') || 20 }, (_, index) => ({
  id: index,
  customer: `customer ${index * 7919}`,
  total: index * 12.5,
  lines: [{ article: `article ${index}`, count: index % 3 }],
}));

// Text and objects are made, as by the rest of a request.
let owed = 0;
let parsed = orders[0];
function roundTrips(times) {
  for (owed += times; owed >= 1; owed -= 1) parsed = JSON.parse(JSON.stringify(parsed));
}

const app = express();
app.disable('x-powered-by');

app.get('/', (req, res) => {
  if (spin > 0) turn(spin);
  roundTrips(work);
  const waitMs = (drawn ? -Math.log(1 - Math.random()) : 1) * delayMs + (tailShare > 0 && Math.random() < tailShare ? tailMs : 0);
  if (waitMs > 0) setTimeout(() => res.json(orders), waitMs);
  else res.json(orders);
});

app.get('/healthz', (req, res) => {
  res.json({ heldMb: held.length, rssMb: process.memoryUsage.rss() / 2 ** 20, sink: spun() });
});

if (cluster.isPrimary && number('WORKERS') > 1) {
  for (let count = number('WORKERS'); count > 0; count -= 1) cluster.fork();
  process.once('SIGTERM', () => Object.values(cluster.workers).forEach((worker) => worker.process.kill('SIGTERM')));
} else {
  serve(http.createServer(app), { ended: leavePrimary });
}
