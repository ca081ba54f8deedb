'use strict';

// Forwards one request and its response. Bodies stream through: while one side does not read, the other is not read.
// It must not forward a request that two readers of HTTP could read in two ways, because a second request can hide in
// that gap (request smuggling). node:http and undici refuse most of those, and this module refuses the rest.

const { STATUS_CODES } = require('node:http');
const { PassThrough } = require('node:stream');

// Headers of one connection end here (RFC 9110, 7.6.1). node:http has replied to Expect.
const HOP_BY_HOP = ['connection', 'keep-alive', 'proxy-connection', 'te', 'transfer-encoding', 'upgrade', 'expect'];
const REPLACED = ['host', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'];
const NOT_TO_ORIGIN = new Set([...HOP_BY_HOP, ...REPLACED]);
const NOT_TO_CLIENT = new Set(HOP_BY_HOP);

// Methods that may be sent again after a connection broke (RFC 9110, 9.2.2).
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);
const BROKEN = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);
const TOO_LATE = new Set(['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']);

const HOST = /^[A-Za-z0-9\-._~%!$&'()*+,;=:[\]]*$/;
const ABSOLUTE_TARGET = /^http:\/\/([^/?#@]+)([^#]*)$/i;

/** Forwards what is below `prefix` to the origin that `pool` is connected to, without the prefix. */
function forward(pool, prefix, req, res) {
  const { method, socket } = req;
  if (!socket.writable) return undefined; // it follows a request that was refused
  const [url, host] = target(req);
  const refusal = refusalOf(req, host);
  if (refusal !== null) return refuse(socket, refusal);
  const path = below(prefix, url);
  if (path === null) return respond(res, 404);
  const hasBody = req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length']) > 0;
  const body = hasBody ? bodyOf(req) : null;
  // undici closes the connection after a HEAD unless `reset` says otherwise.
  const request = { path, method, headers: toOrigin(req, host), body, reset: method === 'HEAD' ? false : null };
  return pool.dispatch(request, new Exchange(pool, request, res));
}

// undici destroys a body that it cannot send. If that were `req` it would destroy the client's connection, which still
// takes the response. The rest of such a body is read and thrown away.
function bodyOf(req) {
  const body = req.pipe(new PassThrough());
  body.once('close', () => req.resume());
  return body;
}

/** Responds with a status and its name. */
function respond(res, status) {
  const body = `${status} ${STATUS_CODES[status]}\n`;
  res.writeHead(status, { 'Content-Type': 'text/plain', 'Content-Length': body.length }).end(body);
}

/** Responds so and closes the connection: what follows on it cannot be trusted. */
function refuse(socket, status) {
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  socket.destroySoon();
}

// The path and the host that are asked for. A host in the target counts, not the header (RFC 9112, 3.2.2).
function target(req) {
  const absolute = ABSOLUTE_TARGET.exec(req.url);
  if (absolute === null) return [req.url, req.headers.host ?? ''];
  return [absolute[2].startsWith('/') ? absolute[2] : `/${absolute[2]}`, absolute[1]];
}

// The status that refuses a request, or null.
function refusalOf(req, host) {
  const { httpVersion } = req;
  const coding = req.headers['transfer-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') return 501;
  if (httpVersion === '1.0') return coding === undefined && hostsIn(req) <= 1 && HOST.test(host) ? null : 400;
  return httpVersion === '1.1' && hostsIn(req) === 1 && HOST.test(host) ? null : 400;
}

// req.headers has only the first of several.
function hostsIn(req) {
  return req.rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host').length;
}

// The target without the prefix, every other byte as it was; null if it is not below the prefix.
function below(prefix, url) {
  if (!url.startsWith(prefix)) return null;
  const rest = url.slice(prefix.length);
  if (rest === '' || rest.startsWith('?')) return `/${rest}`;
  return rest.startsWith('/') ? rest : null;
}

function toOrigin(req, host) {
  const headers = kept(req.rawHeaders, NOT_TO_ORIGIN, req.headers.connection);
  const before = req.headers['x-forwarded-for'];
  const peer = req.socket.remoteAddress ?? 'unknown';
  headers.push('Host', host, 'X-Forwarded-For', before === undefined ? peer : `${before}, ${peer}`);
  headers.push('X-Forwarded-Host', host, 'X-Forwarded-Proto', 'http');
  return headers;
}

// Names and values by turns, in their order, without those in `dropped` and those that Connection names.
function kept(raw, dropped, connection = '') {
  const named = String(connection).toLowerCase().split(/[\t ]*,[\t ]*/);
  const headers = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i].toLowerCase();
    if (!dropped.has(name) && !named.includes(name)) headers.push(raw[i], raw[i + 1]);
  }
  return headers;
}

/** What undici reports about one request: a handler of its `dispatch`. */
class Exchange {
  constructor(pool, request, res) {
    this.pool = pool;
    this.request = request;
    this.res = res;
    this.controller = null;
    this.sentAgain = false;
    res.on('drain', () => this.controller.resume());
    // Nobody waits for a response whose client is gone.
    res.once('close', () => {
      if (!res.writableFinished) this.controller?.abort();
    });
  }

  onRequestStart(controller) {
    this.controller = controller;
    if (this.res.destroyed) controller.abort();
  }

  onResponseStart(controller, status, headers, statusMessage) {
    if (status < 200) return; // only what node:http sends itself goes to the client
    const coding = String(headers['transfer-encoding'] ?? 'chunked');
    if (coding.toLowerCase() !== 'chunked') throw new Error(`Transfer-Encoding: ${coding}`);
    const raw = controller.rawHeaders.map((bytes) => bytes.toString('latin1'));
    this.res.writeHead(status, statusMessage, kept(raw, NOT_TO_CLIENT, headers.connection));
    // It may tell the length of a body that it does not have (RFC 9110, 8.6), which undici takes for an error.
    if (status === 304) this.res.end();
  }

  onResponseData(controller, bytes) {
    if (!this.res.write(bytes)) controller.pause();
  }

  onResponseEnd() {
    this.res.end();
  }

  // The origin may close a connection just when a request is sent over it. If the request may be sent twice, it is.
  onResponseError(controller, error) {
    const { res, request } = this;
    if (res.destroyed || res.writableEnded) return;
    // A reset: the end of a connection can be the end of a body, and a response that is cut off must not look whole.
    if (res.headersSent) res.socket.resetAndDestroy();
    else if (BROKEN.has(error.code) && !this.sentAgain && request.body === null && IDEMPOTENT.has(request.method)) {
      this.sentAgain = true;
      this.pool.dispatch(request, this);
    } else respond(res, TOO_LATE.has(error.code) ? 504 : 502);
  }
}

module.exports = { forward, refuse, respond };
