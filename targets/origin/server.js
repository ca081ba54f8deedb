'use strict';

// The service behind the proxies: node:http alone, and a response of 13 bytes, so that the cost of a proxy is large beside
// it. It must not do anything that would hide a proxy's cost, neither work of its own nor a log.
//
//   PORT, HOST  where it listens

const http = require('node:http');
const { leavePrimary, serve } = require('../serving');

const BODY = Buffer.from('Hello, world!');

// Longer than any proxy keeps a connection to us. The proxy must close first, or a request is lost that it sends over a
// connection that is just being closed.
const KEEP_ALIVE_MS = 65_000;

let requests = 0;

function respond(res, body) {
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
      return respond(res, BODY);
    case '/healthz':
      return respond(res, Buffer.from('OK'));
    // Requests to `/` that this process has responded to, to check a load generator's own count.
    case '/count':
      return count(res);
    default:
      res.writeHead(404, { 'Content-Length': 0 });
      return res.end();
  }
}

serve(http.createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, handle), { backlog: 4096, ended: leavePrimary });
