'use strict';

// A reverse proxy made of what people deploy: node:http accepts requests, undici sends them to the origin. Requests
// below a path prefix are forwarded without the prefix. settings.js lists the settings, forward.js does the forwarding.
//
// It must not log requests, because the nginx that it is compared with does not, and must not change a body.

const http = require('node:http');
const { Pool } = require('undici');
const { forward, refuse, respond } = require('./forward');
const { SettingError, readSettings } = require('./settings');

const BACKLOG = 4096;
const STOP_GRACE_MS = 1000;

function startProxy(settings) {
  const pool = new Pool(settings.origin, {
    connections: settings.connections,
    connectTimeout: settings.connectTimeoutMs,
    headersTimeout: settings.responseTimeoutMs,
    bodyTimeout: settings.responseTimeoutMs,
    // Also where the origin offers more.
    keepAliveTimeout: settings.idleTimeoutMs,
    keepAliveMaxTimeout: settings.idleTimeoutMs,
    maxHeaderSize: settings.headBytes,
  });
  const { clientTimeoutMs, headBytes } = settings;
  const options = {
    keepAliveTimeout: clientTimeoutMs,
    headersTimeout: clientTimeoutMs,
    requestTimeout: 0, // a large body may take as long as it keeps coming
    maxHeaderSize: headBytes,
    requireHostHeader: false, // node:http would go on with the requests that follow: forward.js does not
  };
  const server = http.createServer(options, (req, res) => {
    const { url, method } = req;
    if (url === '/healthz' && (method === 'GET' || method === 'HEAD')) respond(res, 200);
    else forward(pool, settings.prefix, req, res);
  });
  server.timeout = clientTimeoutMs;
  server.on('connect', (req, socket) => refuse(socket, 405));
  server.on('upgrade', (req, socket) => refuse(socket, 501));

  const { port, host } = settings;
  server.listen({ port, host, backlog: BACKLOG }, () => {
    console.log(`listening on http://${host}:${server.address().port}`);
  });
  return () => stopProxy(server, pool);
}

// Requests under way are finished; connections that are still open after the grace period are closed.
function stopProxy(server, pool) {
  // The channel to the primary would keep a worker of a cluster alive.
  server.close(() => {
    pool.destroy();
    process.disconnect?.();
  });
  setTimeout(() => server.closeAllConnections(), STOP_GRACE_MS).unref();
}

try {
  process.once('SIGTERM', startProxy(readSettings(process.env)));
} catch (error) {
  if (!(error instanceof SettingError)) throw error;
  console.error(`reverse-proxy: ${error.message}`);
  process.exitCode = 2;
}
