'use strict';

// What happens when a side is slow, silent or gone.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { once } = require('node:events');
const http = require('node:http');
const net = require('node:net');
const path = require('node:path');
const test = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { serviceFor, startService } = require('../../tests/service');
const { listenFor } = require('../../tests/wire');

const directory = path.join(__dirname, '..');
const PIECE = Buffer.alloc(1 << 20, 7);
const PIECES = 300;
const HELD_MAX = 100 << 20; // of 300 MB: what all sockets on the way may hold, and far less than all of it
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** Waits until `count()` has not changed for a while, and gives it. */
async function settled(count) {
  let before = -1;
  while (count() !== before || before === 0) {
    before = count();
    await sleep(300);
  }
  return before;
}

/** Writes pieces as fast as they are taken, and counts in `sent` what was. */
async function pour(stream, sent) {
  for (let i = 0; i < PIECES; i += 1) {
    if (!stream.write(PIECE)) await once(stream, 'drain');
    sent.bytes += PIECE.length;
  }
  stream.end();
}

test('a client that does not read stops the origin, and gets everything once it does', async (t) => {
  const sent = { bytes: 0 };
  const ORIGIN = await listenFor(t, http.createServer((req, res) => pour(res, sent)));
  const proxy = await serviceFor(t, directory, { ORIGIN });
  const request = http.get(`${proxy.origin}/api/`);
  const [response] = await once(request, 'response');
  const held = await settled(() => sent.bytes);
  assert.ok(held < HELD_MAX, `${held} bytes taken from the origin for a client that reads none`);
  let received = 0;
  for await (const chunk of response) received += chunk.length;
  assert.equal(received, PIECES * PIECE.length);
});

test('an origin that does not read stops the client, and gets everything once it does', async (t) => {
  const sent = { bytes: 0 };
  let begin;
  const begun = new Promise((resolve) => (begin = resolve));
  const ORIGIN = await listenFor(t, http.createServer(async (req, res) => {
    await begun;
    let received = 0;
    for await (const chunk of req) received += chunk.length;
    res.end(String(received));
  }));
  const proxy = await serviceFor(t, directory, { ORIGIN });
  const request = http.request(`${proxy.origin}/api/`, { method: 'PUT' });
  const poured = pour(request, sent);
  const held = await settled(() => sent.bytes);
  assert.ok(held < HELD_MAX, `${held} bytes taken from the client for an origin that reads none`);
  begin();
  const [response] = await once(request, 'response');
  await poured;
  assert.equal((await response.setEncoding('latin1').toArray()).join(''), String(PIECES * PIECE.length));
});

test('a client that leaves takes its request at the origin with it, before the response and within', async (t) => {
  const origin = http.createServer((req, res) => {
    if (req.url === '/within') res.write('begun');
    origin.emit('taken', res);
  });
  const proxy = await serviceFor(t, directory, { ORIGIN: await listenFor(t, origin) });
  for (const target of ['/before', '/within']) {
    const taken = once(origin, 'taken');
    const request = http.get(`${proxy.origin}/api${target}`);
    request.on('error', () => {});
    if (target === '/within') await once(request, 'response');
    const [res] = await taken;
    const closed = once(res, 'close');
    request.destroy();
    await closed;
    assert.equal(res.writableFinished, false);
  }
});

/** An origin whose connections answer their first request, and close when they get a second. */
async function fickleProxy(t) {
  const seen = { connections: 0, requests: 0 };
  const server = net.createServer((socket) => {
    let asked = 0;
    seen.connections += 1;
    socket.on('data', () => {
      asked += 1;
      seen.requests += 1;
      if (asked === 1) socket.write(OK);
      else socket.end();
    });
  });
  const proxy = await serviceFor(t, directory, { ORIGIN: await listenFor(t, server) });
  assert.equal((await proxy.get('/api/')).status, 200);
  return { proxy, seen };
}

test('a kept connection that breaks unanswered is replaced once, for requests that may be sent twice', async (t) => {
  const { proxy, seen } = await fickleProxy(t);
  const response = await proxy.get('/api/');
  assert.equal(await response.text(), 'ok');
  assert.deepEqual(seen, { connections: 2, requests: 3 });
});

test('a POST and a request with a body are not sent twice', async (t) => {
  for (const init of [{ method: 'POST' }, { method: 'PUT', body: 'x' }]) {
    const { proxy, seen } = await fickleProxy(t);
    assert.equal((await fetch(`${proxy.origin}/api/`, init)).status, 502);
    assert.equal(seen.requests, 2);
  }
});

test('an origin that closes each connection is asked twice at most', async (t) => {
  let connections = 0;
  const server = net.createServer((socket) => {
    connections += 1;
    socket.once('data', () => socket.destroy());
  });
  const proxy = await serviceFor(t, directory, { ORIGIN: await listenFor(t, server) });
  assert.equal((await proxy.get('/api/')).status, 502);
  assert.equal(connections, 2);
});

test('no origin is 502, a silent one 504, both with a body, and the proxy lives', async (t) => {
  const server = net.createServer();
  const ORIGIN = await listenFor(t, server);
  const proxy = await serviceFor(t, directory, { ORIGIN, RESPONSE_TIMEOUT_MS: '300' });
  const silent = await proxy.get('/api/');
  assert.equal(silent.status, 504);
  assert.equal(await silent.text(), '504 Gateway Timeout\n');
  server.close();
  await sleep(10);
  const refused = await proxy.get('/api/');
  assert.equal(refused.status, 502);
  assert.equal(await refused.text(), '502 Bad Gateway\n');
  assert.equal((await proxy.get('/healthz')).status, 200);
});

test('an origin that breaks while a body is sent to it is 502, and the proxy lives', async (t) => {
  const server = net.createServer((socket) => socket.once('data', () => socket.destroy()));
  const proxy = await serviceFor(t, directory, { ORIGIN: await listenFor(t, server) });
  const request = http.request(`${proxy.origin}/api/`, { method: 'PUT' });
  request.on('error', () => {});
  pour(request, { bytes: 0 }).catch(() => {}); // it is stopped below
  const [response] = await once(request, 'response');
  assert.equal(response.statusCode, 502);
  request.destroy();
  assert.equal((await proxy.get('/healthz')).status, 200);
});

test('a response that is cut off never looks whole', async (t) => {
  let answer = '';
  const server = net.createServer((socket) => socket.once('data', () => socket.end(answer)));
  const proxy = await serviceFor(t, directory, { ORIGIN: await listenFor(t, server) });
  const length = 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf';
  const chunks = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n';
  for (answer of [length, chunks]) {
    const response = await proxy.get('/api/');
    await assert.rejects(response.text(), /terminated/);
  }
});

test('connections idle for longer than IDLE_TIMEOUT_MS are closed by the proxy, not by the origin', async (t) => {
  const origin = http.createServer((req, res) => res.end('ok'));
  const proxy = await serviceFor(t, directory, { ORIGIN: await listenFor(t, origin), IDLE_TIMEOUT_MS: '100' });
  const connected = once(origin, 'connection');
  await (await proxy.get('/api/')).arrayBuffer();
  const [socket] = await connected;
  await once(socket, 'end');
});

test('an early answer to a large request reaches the client that is still sending', async (t) => {
  const ORIGIN = await listenFor(t, http.createServer((req, res) => {
    res.writeHead(413, { 'Content-Length': 9 });
    res.end('too large');
  }));
  const proxy = await serviceFor(t, directory, { ORIGIN });
  const request = http.request(`${proxy.origin}/api/`, { method: 'POST', headers: { 'Content-Length': 50_000_000 } });
  request.on('error', () => {});
  request.write(PIECE);
  const [response] = await once(request, 'response');
  assert.equal(response.statusCode, 413);
  assert.equal((await response.setEncoding('latin1').toArray()).join(''), 'too large');
  request.destroy();
});

test('SIGTERM lets a request end that is under way, and ends the proxy cleanly', async (t) => {
  const origin = http.createServer((req, res) => origin.emit('taken', res));
  const proxy = await startService(directory, { ORIGIN: await listenFor(t, origin) });
  const idle = net.connect(new URL(proxy.origin).port, '127.0.0.1');
  idle.on('error', () => {}); // being cut off is what this client is here for
  await once(idle, 'connect');
  const taken = once(origin, 'taken');
  const answered = proxy.get('/api/');
  const [res] = await taken;
  const stopped = proxy.stop();
  await sleep(100);
  res.end('ok');
  assert.equal(await (await answered).text(), 'ok');
  assert.equal(await stopped, 0);
});

test('a setting that cannot be meant stops the start with its name and its limit', () => {
  for (const [env, told] of [
    [{}, /ORIGIN: missing, want http:\/\/HOST:PORT/],
    [{ ORIGIN: 'http://a:1/path' }, /ORIGIN: http:\/\/a:1\/path/],
    [{ ORIGIN: 'http://a:1', HEAD_BYTES: '10' }, /HEAD_BYTES: 10 is not a number from 256 to/],
    [{ ORIGIN: 'http://a:1', PREFIX: 'api' }, /PREFIX: api is not a path/],
  ]) {
    const { status, stderr } = spawnSync(process.execPath, ['server.js'], { cwd: directory, env, encoding: 'utf8' });
    assert.equal(status, 2);
    assert.match(stderr, told);
  }
});
