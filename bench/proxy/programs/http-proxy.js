'use strict';

// The same way by http-proxy-3, the kept successor of the package that most Node proxies are made of: node:http on both
// sides. It has less to do than targets/reverse-proxy: it drops no headers of one connection and repeats no request.

const http = require('node:http');
const { createProxyServer } = require('http-proxy-3');

const agent = new http.Agent({ keepAlive: true, maxFreeSockets: 256, timeout: 4000, noDelay: true });
const proxy = createProxyServer({ target: process.env.ORIGIN, agent, xfwd: true });
proxy.on('error', (error, req, res) => res.destroy(error));

const server = http.createServer((req, res) => {
  req.url = req.url.slice('/api'.length);
  proxy.web(req, res);
});
server.listen(Number(process.env.PORT), '127.0.0.1');
