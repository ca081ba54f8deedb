'use strict';

// A plain node:http service into which faults of a measurement can be planted, for the study of whether the checks find
// them. Without a variable it has no fault, and it must not have one that faults.js does not name.
//
//   PORT, HOST  where it listens

const http = require('node:http');
const { leavePrimary, serve } = require('../serving');
const { responseOn, begin, delayMs, listening, onRequest } = require('./faults');

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

serve(http.createServer(handle), { ...listening, ended: leavePrimary });
begin();
