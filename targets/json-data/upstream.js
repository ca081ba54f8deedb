'use strict';

// The service that the application reads from over the network: the data sets in the folder DATA, sent from the disk piece
// by piece. It is plain Node and cheap, so that it adds little to the cost of the application. It reads HOST and PORT.

const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { serve } = require('../serving');

// Longer than clients keep an idle connection. The client must close first, or it sends a request over a connection that is
// just being closed.
const KEEP_ALIVE_MS = 65_000;
const PIECE_BYTES = 1 << 16;
const DOCUMENTS = new Set(['/small.json', '/large.json']);

const folder = process.env.DATA ?? path.join(__dirname, 'data');
let requests = 0;

const server = http.createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (req, res) => {
  if (req.url === '/healthz') {
    res.end('OK');
  } else if (req.url === '/count') {
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify({ requests }));
  } else if (req.method === 'GET' && DOCUMENTS.has(req.url)) {
    requests += 1;
    send(path.join(folder, req.url), res).catch((error) => fail(error, res));
  } else {
    res.writeHead(404).end();
  }
});

// One buffer for the whole response, so that two gigabytes leave no garbage: a stream would allocate a buffer for each piece,
// tens of megabytes before they are collected.
async function send(file, res) {
  const handle = await fs.promises.open(file);
  try {
    res.setHeader('content-type', 'application/json');
    res.setHeader('content-length', (await handle.stat()).size);
    const buffer = Buffer.allocUnsafeSlow(PIECE_BYTES);
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, null);
      if (bytesRead === 0) break;
      await sent(buffer.subarray(0, bytesRead), res);
    }
    res.end();
  } finally {
    await handle.close();
  }
}

// Resolves when the kernel has the bytes, and the buffer may be used again.
function sent(bytes, res) {
  return new Promise((resolve, reject) => {
    res.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}

function fail(error, res) {
  if (res.destroyed) return; // the client is gone
  console.error(error.message);
  if (res.headersSent) {
    res.destroy(); // a response that is cut off must not look whole
  } else {
    res.writeHead(500).end();
  }
}

serve(server, { port: 3001 });
