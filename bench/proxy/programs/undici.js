'use strict';

// What the Node reverse proxy is compared with: the same way with node:http before and undici behind, its dispatch with
// raw header lists. It has only what a request without a body and a small response need, so its figure is a lower limit.

const http = require('node:http');
const { Pool } = require('undici');

const pool = new Pool(process.env.ORIGIN, { connections: 64, pipelining: 1, keepAliveTimeout: 4000 });
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding']);

function forwarded(req) {
  const headers = [];
  for (let i = 0; i < req.rawHeaders.length; i += 2) {
    if (!HOP_BY_HOP.has(req.rawHeaders[i].toLowerCase())) headers.push(req.rawHeaders[i], req.rawHeaders[i + 1]);
  }
  const { host } = req.headers;
  headers.push('X-Forwarded-For', req.socket.remoteAddress, 'X-Forwarded-Host', host, 'X-Forwarded-Proto', 'http');
  return headers;
}

class Handler {
  constructor(res) {
    this.res = res;
  }

  onConnect() {}

  onHeaders(status, raw) {
    const headers = [];
    for (let i = 0; i < raw.length; i += 2) {
      const name = raw[i].toString('latin1');
      if (!HOP_BY_HOP.has(name.toLowerCase())) headers.push(name, raw[i + 1].toString('latin1'));
    }
    this.res.sendDate = false;
    this.res.writeHead(status, headers);
    return true;
  }

  // Head and body go in one write: a small body is whole with its first piece.
  onData(chunk) {
    this.body = chunk;
    return true;
  }

  onComplete() {
    this.res.end(this.body);
  }

  onError(error) {
    this.res.destroy(error);
  }
}

const server = http.createServer((req, res) => {
  const path = req.url.slice('/api'.length);
  pool.dispatch({ path, method: req.method, headers: forwarded(req), body: null }, new Handler(res));
});
server.listen(Number(process.env.PORT), '127.0.0.1');
