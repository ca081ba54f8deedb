'use strict';

// A reverse proxy: what comes below a path prefix goes to an origin, without the prefix. As close to nginx as Node gets,
// which means TCP on both sides and no more of HTTP than a proxy needs: node:http makes objects and strings of every
// message, where most of it only has to be passed on. What it is told is in settings.js.
//
// It must not log requests, for nginx beside it does not either, nor change a body.

const net = require('node:net');
const { Client } = require('./client');
const { SettingError, readSettings } = require('./settings');
const { Pool } = require('./upstream');

const BACKLOG = 4096;
const CHECK_MS = 250;
const STOP_GRACE_MS = 1000;

function startProxy(settings) {
  const clock = { nowMs: performance.now() };
  const proxy = { settings, clock, pool: new Pool(settings, clock), clients: new Set(), stopping: false };
  const server = net.createServer({ noDelay: true }, (socket) => proxy.clients.add(new Client(proxy, socket)));

  // One timer for all time-outs, and a clock that is read nowhere else: a timer for each connection would be set anew
  // with each request.
  setInterval(() => {
    clock.nowMs = performance.now();
    proxy.pool.check(clock.nowMs);
    for (const client of proxy.clients) client.check(clock.nowMs);
  }, CHECK_MS).unref();

  const { port, host, reusePort } = settings;
  server.listen({ port, host, backlog: BACKLOG, ...(reusePort ? { reusePort } : {}) }, () => {
    console.log(`listening on http://${host}:${server.address().port}`);
  });
  return () => stopProxy(server, proxy);
}

// Exchanges under way are finished; what is not after the grace is cut.
function stopProxy(server, proxy) {
  proxy.stopping = true;
  // As a worker of a cluster it is held by the channel to the primary, too.
  server.close(() => process.disconnect?.());
  for (const client of proxy.clients) if (client.exchange === null) client.socket.destroy();
  setTimeout(() => {
    for (const client of proxy.clients) client.socket.destroy();
    proxy.pool.dropIdle();
  }, STOP_GRACE_MS).unref();
  proxy.pool.dropIdle();
}

try {
  process.once('SIGTERM', startProxy(readSettings(process.env)));
} catch (error) {
  if (!(error instanceof SettingError)) throw error;
  console.error(`reverse-proxy: ${error.message}`);
  process.exitCode = 2;
}
