'use strict';

// Requests that two readers could read in two ways are refused, and so is what follows on their connection.

const assert = require('node:assert/strict');
const http = require('node:http');
const net = require('node:net');
const path = require('node:path');
const test = require('node:test');
const { serviceFor } = require('../../tests/service');
const { listenFor, talk } = require('../../tests/wire');

const directory = path.join(__dirname, '..');
const POST = 'POST /api/ HTTP/1.1\r\nHost: a\r\n';
const CHUNKED = 'Transfer-Encoding: chunked\r\n';

const REFUSED = [
  ['both lengths', 400, `${POST}Content-Length: 5\r\n${CHUNKED}\r\n0\r\n\r\n`],
  ['both lengths, the other order', 400, `${POST}${CHUNKED}Content-Length: 5\r\n\r\n0\r\n\r\n`],
  ['two lengths', 400, `${POST}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello`],
  ['two lengths in one', 400, `${POST}Content-Length: 5, 5\r\n\r\nhello`],
  ['a length with a sign', 400, `${POST}Content-Length: +5\r\n\r\nhello`],
  ['a length that is none', 400, `${POST}Content-Length: 0x5\r\n\r\nhello`],
  ['an unknown coding', 501, `${POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`],
  ['a coding beside chunked', 501, `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
  ['chunked twice', 400, `${POST}${CHUNKED}${CHUNKED}\r\n0\r\n\r\n`],
  ['a coding with a vertical tab', 400, `${POST}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n`],
  ['chunks in HTTP/1.0', 400, `POST /api/ HTTP/1.0\r\nHost: a\r\n${CHUNKED}\r\n0\r\n\r\n`],
  ['a blank before the colon', 400, `${POST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`],
  ['a folded line', 400, `${POST}X-A: 1\r\n ${CHUNKED}\r\n0\r\n\r\n`],
  ['a bare line feed', 400, `${POST}X-A: 1\n${CHUNKED}\r\n0\r\n\r\n`],
  ['a bare carriage return', 400, `${POST}X-A: 1\r${CHUNKED}\r\n0\r\n\r\n`],
  ['a zero byte', 400, `${POST}X-A: \0\r\n\r\n`],
  ['a blank in the target', 400, 'GET /api/ x HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['no host', 400, 'GET /api/ HTTP/1.1\r\n\r\n'],
  ['two hosts', 400, 'GET /api/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'],
  ['a host that is none', 400, 'GET /api/ HTTP/1.1\r\nHost: a/b\r\n\r\n'],
  ['another protocol', 400, 'GET /api/ HTTP/2.0\r\nHost: a\r\n\r\n'],
  ['a tunnel', 405, 'CONNECT /api/ HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['an upgrade', 501, 'GET /api/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
  ['a head without end', 431, `GET /api/ HTTP/1.1\r\nHost: a\r\nX-A: ${'a'.repeat(20_000)}`],
  ['a chunk size that is none', 400, `${POST}${CHUNKED}\r\n-1\r\n\r\n`],
  ['a chunk size with a blank', 400, `${POST}${CHUNKED}\r\n3 \r\nabc\r\n0\r\n\r\n`],
  ['a chunk size beyond numbers', 400, `${POST}${CHUNKED}\r\n${'f'.repeat(17)}\r\nabc\r\n0\r\n\r\n`],
  ['a line feed in a chunk extension', 400, `${POST}${CHUNKED}\r\n3;a\nb\r\nabc\r\n0\r\n\r\n`],
  ['a chunk longer than it says', 400, `${POST}${CHUNKED}\r\n3\r\nabcd\r\n0\r\n\r\n`],
  ['a bare line feed after a chunk', 400, `${POST}${CHUNKED}\r\n3\nabc\r\n0\r\n\r\n`],
];

test('what could be read in two ways is refused with all that follows it, and is never whole at the origin', async (t) => {
  const seen = [];
  const ORIGIN = await listenFor(t, http.createServer((req, res) => {
    req.resume().once('end', () => seen.push(req.url));
    res.end();
  }));
  const proxy = await serviceFor(t, directory, { ORIGIN });
  const hidden = 'GET /api/hidden HTTP/1.1\r\nHost: a\r\n\r\n';
  for (const [name, status, request] of REFUSED) {
    const text = await talk(proxy.origin, request + hidden, (soFar) => soFar.includes('\n\n') || soFar.endsWith('\n'));
    assert.ok(text.startsWith(`HTTP/1.1 ${status} `), `${name}: ${text}`);
    assert.match(text, /\r\nConnection: close\r\n/, name);
    assert.equal(text.match(/HTTP\/1/g).length, 1, `${name}: one response`);
  }
  assert.deepEqual(seen, []);
  assert.equal((await proxy.get('/api/after')).status, 200);
  assert.deepEqual(seen, ['/after']);
});

test('Connection cannot name away the length of a body', async (t) => {
  const bodies = [];
  const ORIGIN = await listenFor(t, http.createServer(async (req, res) => {
    bodies.push((await req.setEncoding('latin1').toArray()).join(''));
    res.end('done');
  }));
  const proxy = await serviceFor(t, directory, { ORIGIN });
  const inner = 'GET /api/hidden HTTP/1.1\r\nHost: a\r\n\r\n';
  const named = 'Connection: close, Content-Length, Transfer-Encoding, Host\r\n';
  await talk(proxy.origin, `${POST}${named}Content-Length: ${inner.length}\r\n\r\n${inner}`);
  await talk(proxy.origin, `${POST}${named}${CHUNKED}\r\n${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`);
  assert.deepEqual(bodies, [inner, inner]);
});

test('a response that could be read in two ways is not passed on', async (t) => {
  let answer = '';
  const server = net.createServer((socket) => socket.on('data', () => socket.write(answer, 'latin1')));
  const proxy = await serviceFor(t, directory, { ORIGIN: await listenFor(t, server) });
  const ok = 'HTTP/1.1 200 OK\r\n';
  const broken = [
    `${ok}Content-Length: 2\r\n${CHUNKED}\r\n0\r\n\r\n`,
    `${ok}Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc`,
    `${ok}Transfer-Encoding: gzip\r\n\r\n`,
    `${ok}X-A: 1\nX-B: 2\r\n\r\n`,
    `${ok}X-A: ${'a'.repeat(20_000)}\r\n\r\n`,
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n',
    'SSH-2.0-OpenSSH\r\n\r\n',
  ];
  for (answer of broken) {
    const response = await proxy.get('/api/');
    assert.equal(response.status, 502, answer.slice(0, 80));
    await response.arrayBuffer();
  }
});
