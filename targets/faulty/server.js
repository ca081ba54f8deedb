'use strict';

// A plain node:http service into which faults of a measurement can be planted, for the study of whether the checks find
// them. Without a variable it has no fault, and it must not have one that faults.js does not name.
//
//   PORT, HOST  where it listens

const http = require('node:http');
const { responseOn, begin, delayMs, listening, onRequest } = require('./faults');

const STOP_GRACE_MS = 1000;
const HEALTH = { status: 200, headers: { 'Content-Length': 2 }, body: 'OK' };

function handle(req, res) {
  req.resume();
  if (req.url === '/healthz') return send(res, HEALTH);
  onRequest();
  const response = responseOn(req.socket);
  if (delayMs > 0) return setTimeout(() => send(res, response), delayMs);
  return send(res, response);
}

function send(res, { status, headers, body }) {
  res.writeHead(status, headers);
  res.end(body);
}

const server = http.createServer(handle);
const { PORT = '3000', HOST = '127.0.0.1' } = process.env;
server.listen({ port: Number(PORT), host: HOST, ...listening }, () => {
  console.log(`listening on http://${HOST}:${server.address().port}`);
});
begin();

// Requests under way are finished; connections that are still open after the grace period are closed.
process.once('SIGTERM', () => {
  // The channel to the primary would keep a worker of a cluster alive.
  server.close(() => process.disconnect?.());
  setTimeout(() => server.closeAllConnections(), STOP_GRACE_MS).unref();
});
