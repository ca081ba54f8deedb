'use strict';

// A plain service of node:http into which faults of a measurement can be planted, for the study of whether they are
// found. Without a variable it has none, and it must not have one that faults.js does not name.
//
//   PORT, HOST  where it listens

const http = require('node:http');
const { answerOn, begin, delayMs, listening, onRequest } = require('./faults');

const STOP_GRACE_MS = 1000;
const HEALTH = { status: 200, headers: { 'Content-Length': 2 }, body: 'OK' };

function handle(req, res) {
  req.resume();
  if (req.url === '/healthz') return send(res, HEALTH);
  onRequest();
  const answer = answerOn(req.socket);
  if (delayMs > 0) return setTimeout(() => send(res, answer), delayMs);
  return send(res, answer);
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

// Requests under way are finished; connections that a client keeps open are cut after the grace.
process.once('SIGTERM', () => {
  // As a worker of a cluster it is held by the channel to the primary, too.
  server.close(() => process.disconnect?.());
  setTimeout(() => server.closeAllConnections(), STOP_GRACE_MS).unref();
});
