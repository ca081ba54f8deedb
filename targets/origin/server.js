'use strict';

// The service that a proxy stands before: node:http alone, and a response of 13 bytes, so that whatever a proxy adds is
// large beside it. It must not do anything that would hide a proxy's cost, neither work of its own nor a log.
//
//   PORT, HOST  where it listens

const http = require('node:http');

const BODY = Buffer.from('Hello, world!');
const STOP_GRACE_MS = 1000;

// Longer than any proxy keeps a connection to us: who closes first must be the one that sends requests, for else a
// request may be under way to a connection that is just being closed, and is lost.
const KEEP_ALIVE_MS = 65_000;

let requests = 0;

function answer(res, body) {
  res.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': body.length });
  res.end(body);
}

function count(res) {
  res.writeHead(200, { 'Content-Type': 'application/json' });
  res.end(JSON.stringify({ requests }));
}

function handle(req, res) {
  req.resume();
  switch (req.url) {
    case '/':
      requests += 1;
      return answer(res, BODY);
    case '/healthz':
      return answer(res, Buffer.from('OK'));
    // Requests to `/` that this process has answered: what a load generator's own count is checked against.
    case '/count':
      return count(res);
    default:
      res.writeHead(404, { 'Content-Length': 0 });
      return res.end();
  }
}

const server = http.createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, handle);
const { PORT = '3000', HOST = '127.0.0.1' } = process.env;
server.listen({ port: Number(PORT), host: HOST, backlog: 4096 }, () => {
  console.log(`listening on http://${HOST}:${server.address().port}`);
});

// Requests under way are finished; connections that a client keeps open are cut after the grace.
process.once('SIGTERM', () => {
  // As a worker of a cluster it is held by the channel to the primary, too.
  server.close(() => process.disconnect?.());
  setTimeout(() => server.closeAllConnections(), STOP_GRACE_MS).unref();
});
