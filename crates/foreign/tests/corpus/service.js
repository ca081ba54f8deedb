'use strict';

// The service that the corpus was measured on: fixed bodies, slow and failing answers, and what a client sent, told on its
// output for /headers. It must not listen beyond this machine.

const http = require('node:http');

const SMALL_BODY = 'x'.repeat(1000);
// Longer than the limit of every tool as make.sh calls it.
const SLOW_MS = 2500;

const ANSWERS = {
  '/small': (request, response) => response.end(SMALL_BODY),
  '/slow': (request, response) => setTimeout(() => response.end('late'), SLOW_MS),
  '/error': (request, response) => response.writeHead(500).end(SMALL_BODY),
  '/reset': (request) => request.socket.resetAndDestroy(),
  '/headers': tellHeaders,
};

function tellHeaders(request, response) {
  const { httpVersion, headers } = request;
  process.stdout.write(`HTTP/${httpVersion} ${headers['user-agent']}: ${JSON.stringify(headers)}\n`);
  response.end('noted');
}

const server = http.createServer((request, response) => {
  const answer = ANSWERS[request.url];
  response.setHeader('content-type', 'application/json');
  if (answer) answer(request, response);
  else response.writeHead(404).end('nothing here');
});
server.listen(Number(process.env.PORT), '127.0.0.1', () => process.stdout.write('ready\n'));
