'use strict';

// HTTP byte for byte, for tests of what a client library would not send or not show. It must not judge anything.

const { once } = require('node:events');
const net = require('node:net');

/**
 * Sends `bytes` to the service at `url` and returns what comes back as latin1 text: until the service closes the
 * connection, or until `isWhole(text)`. Of a connection that is reset it returns what came before the reset.
 */
async function talk(url, bytes, isWhole = () => false) {
  const { hostname, port } = new URL(url);
  const socket = net.connect(port, hostname);
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
    if (isWhole(text)) socket.destroy();
  });
  socket.write(bytes, 'latin1');
  await once(socket, 'close').catch(() => {}); // a reset ends it too
  return text;
}

/** Lets `server`, of node:http or node:net, listen for one test; returns its URL. */
async function listenFor(test, server) {
  const sockets = new Set();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  test.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

module.exports = { listenFor, talk };
