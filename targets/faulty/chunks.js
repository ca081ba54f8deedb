'use strict';

// A server that the client has more to do with than itself: its one answer is made beforehand, and comes in chunks of
// CHUNK_BYTES, which a client has to read one by one. It must not look at what is asked.
//
//   PORT, HOST   where it listens
//   CHUNK_BYTES  length of a chunk; the whole answer without it

const net = require('node:net');

const BODY_BYTES = 16_384;
const { PORT = '3000', HOST = '127.0.0.1', CHUNK_BYTES = BODY_BYTES } = process.env;
const ANSWER = answerIn(Number(CHUNK_BYTES));
const HEAD_END = '\r\n\r\n';

function answerIn(chunkBytes) {
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n';
  const chunk = `${chunkBytes.toString(16)}\r\n${'x'.repeat(chunkBytes)}\r\n`;
  return Buffer.from(`${head}${chunk.repeat(BODY_BYTES / chunkBytes)}0\r\n\r\n`);
}

const sockets = new Set();
const server = net.createServer({ noDelay: true }, (socket) => {
  sockets.add(socket);
  socket.on('error', () => {}); // a client that goes away is none of ours
  socket.on('close', () => sockets.delete(socket));
  let rest = '';
  socket.setEncoding('latin1').on('data', (text) => {
    // Requests without a body: each ends where its head does.
    const heads = (rest + text).split(HEAD_END);
    rest = heads.pop();
    heads.forEach(() => socket.write(ANSWER));
  });
});

server.listen({ port: Number(PORT), host: HOST, backlog: 4096 }, () => {
  console.log(`listening on http://${HOST}:${server.address().port}`);
});

process.once('SIGTERM', () => {
  server.close();
  for (const socket of sockets) socket.destroy();
});
