'use strict';

// What the Node reverse proxy is compared with: the same way with node:http on both sides and an Agent that keeps
// connections. It has only what a request without a body and a small response need, so its figure is a lower limit.

const http = require('node:http');

const { hostname, port } = new URL(process.env.ORIGIN);
const agent = new http.Agent({ keepAlive: true, maxFreeSockets: 256, timeout: 4000, noDelay: true });
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding']);

function kept(raw) {
  const headers = [];
  for (let i = 0; i < raw.length; i += 2) {
    if (!HOP_BY_HOP.has(raw[i].toLowerCase())) headers.push(raw[i], raw[i + 1]);
  }
  return headers;
}

const server = http.createServer((req, res) => {
  const headers = kept(req.rawHeaders);
  const { host } = req.headers;
  headers.push('X-Forwarded-For', req.socket.remoteAddress, 'X-Forwarded-Host', host, 'X-Forwarded-Proto', 'http');
  const path = req.url.slice('/api'.length);
  const onward = http.request({ agent, hostname, port, path, method: req.method, headers }, (answer) => {
    res.sendDate = false;
    res.writeHead(answer.statusCode, kept(answer.rawHeaders));
    // Head and body go in one write: a small body is whole with its first piece.
    let body;
    answer.on('data', (chunk) => (body = chunk));
    answer.on('end', () => res.end(body));
  });
  onward.on('error', (error) => res.destroy(error));
  onward.end();
});
server.listen(Number(process.env.PORT), '127.0.0.1');
