'use strict';

// A server that costs its client more than itself: its one response is made in advance, in chunks of CHUNK_BYTES, which a
// client has to read one by one. It must not look at the request.
//
//   PORT, HOST   where it listens
//   CHUNK_BYTES  length of a chunk; that of the whole body by default

const net = require('node:net');

const BODY_BYTES = 16_384;
const { PORT = '3000', HOST = '127.0.0.1', CHUNK_BYTES = BODY_BYTES } = process.env;
const RESPONSE = responseIn(Number(CHUNK_BYTES));
const HEAD_END = '\r\n\r\n';

function responseIn(chunkBytes) {
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n';
  const chunk = `${chunkBytes.toString(16)}\r\n${'x'.repeat(chunkBytes)}\r\n`;
  return Buffer.from(`${head}${chunk.repeat(BODY_BYTES / chunkBytes)}0\r\n\r\n`);
}

const sockets = new Set();
const server = net.createServer({ noDelay: true }, (socket) => {
  sockets.add(socket);
  socket.on('error', () => {}); // a client that goes away is no error here
  socket.on('close', () => sockets.delete(socket));
  let rest = '';
  socket.setEncoding('latin1').on('data', (text) => {
    // Requests have no body: each ends with its head.
    const heads = (rest + text).split(HEAD_END);
    rest = heads.pop();
    heads.forEach(() => socket.write(RESPONSE));
  });
});

server.listen({ port: Number(PORT), host: HOST, backlog: 4096 }, () => {
  console.log(`listening on http://${HOST}:${server.address().port}`);
});

process.once('SIGTERM', () => {
  server.close();
  for (const socket of sockets) socket.destroy();
});
