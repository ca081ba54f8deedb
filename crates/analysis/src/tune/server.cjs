// Loaded into a service while `proofload tune` tries settings of its HTTP server that only its code can have.
'use strict';
const net = require('node:net');
const of = (name) => (process.env[name] === undefined ? undefined : Number(process.env[name]));
const [keepAlive, headers, backlog] =
  ['PROOFLOAD_KEEP_ALIVE_MS', 'PROOFLOAD_HEADERS_MS', 'PROOFLOAD_BACKLOG'].map(of);
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...args) {
  if ('keepAliveTimeout' in this) {
    if (keepAlive !== undefined) this.keepAliveTimeout = keepAlive;
    if (headers !== undefined) this.headersTimeout = this.requestTimeout = headers;
  }
  if (backlog !== undefined && typeof args[0] !== 'object') {
    const done = typeof args.at(-1) === 'function' ? [args.pop()] : [];
    const host = typeof args[1] === 'string' ? [args[1]] : [];
    return listen.call(this, args[0], ...host, backlog, ...done);
  }
  if (backlog !== undefined && args[0]?.port !== undefined) args[0] = { ...args[0], backlog };
  return listen.apply(this, args);
};
