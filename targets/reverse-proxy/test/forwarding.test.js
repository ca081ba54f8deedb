'use strict';

// What goes through the proxy stays as it is, except for what belongs to one connection.

const assert = require('node:assert/strict');
const { createHash, randomBytes } = require('node:crypto');
const { once } = require('node:events');
const http = require('node:http');
const net = require('node:net');
const path = require('node:path');
const test = require('node:test');
const { serviceFor } = require('../../tests/service');
const { listenFor, talk } = require('../../tests/wire');

const directory = path.join(__dirname, '..');
const LARGE = randomBytes(10_000_000);
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** An origin with `handle`, and the proxy before it. */
async function proxyFor(t, handle, env = {}) {
  const ORIGIN = await listenFor(t, http.createServer(handle));
  return serviceFor(t, directory, { ORIGIN, ...env });
}

/** An origin that responds with `bytes` to each request, and the proxy before it. */
async function proxyForBytes(t, bytes) {
  const server = net.createServer((socket) => socket.on('data', () => socket.write(bytes, 'latin1')));
  return serviceFor(t, directory, { ORIGIN: await listenFor(t, server) });
}

async function hashOf(stream) {
  const hash = createHash('sha256');
  for await (const chunk of stream) hash.update(chunk);
  return hash.digest('hex');
}

test('ten megabytes come down whole, with a length and in chunks', async (t) => {
  const proxy = await proxyFor(t, (req, res) => {
    if (req.url === '/length') res.setHeader('Content-Length', LARGE.length);
    res.write(LARGE.subarray(0, 1));
    res.end(LARGE.subarray(1));
  });
  for (const [target, length] of [['/api/length', String(LARGE.length)], ['/api/chunks', null]]) {
    const response = await proxy.get(target);
    assert.equal(response.headers.get('content-length'), length);
    assert.equal(sha256(Buffer.from(await response.arrayBuffer())), sha256(LARGE));
  }
});

test('ten megabytes go up whole, with a length and in chunks, and get a response', async (t) => {
  const proxy = await proxyFor(t, async (req, res) => {
    res.end(`${req.headers['content-length'] ?? req.headers['transfer-encoding']} ${await hashOf(req)}`);
  });
  for (const [headers, said] of [[{ 'Content-Length': LARGE.length }, LARGE.length], [{}, 'chunked']]) {
    const request = http.request(`${proxy.origin}/api/`, { method: 'POST', headers });
    request.write(LARGE.subarray(0, 100_000));
    request.end(LARGE.subarray(100_000));
    const [response] = await once(request, 'response');
    assert.equal((await response.setEncoding('latin1').toArray()).join(''), `${said} ${sha256(LARGE)}`);
  }
});

test('a target loses its prefix and no other byte; what is not below it does not reach the origin', async (t) => {
  const proxy = await proxyFor(t, (req, res) => res.end(req.url));
  const pairs = [
    ['/api', '/'],
    ['/api?x=1', '/?x=1'],
    ['/api/a%2fb/../%C3%A4//c;d?e=%00&f= %'.replace(' ', '+'), '/a%2fb/../%C3%A4//c;d?e=%00&f=+%'],
    ['http://elsewhere/api/x', '/x'],
  ];
  for (const [target, seen] of pairs) {
    const text = await talk(proxy.origin, `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    assert.ok(text.endsWith(`\r\n\r\n${seen}`), `${target}: ${text}`);
  }
  for (const target of ['/', '/apis', '/API/', '*']) {
    const text = await talk(proxy.origin, `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    assert.match(text, /^HTTP\/1\.1 404 /, target);
  }
});

test('fields go on in their order and letters, those of one connection do not', async (t) => {
  const proxy = await proxyFor(t, (req, res) => {
    res.writeHead(200, ['X-B', '1', 'x-a', '2', 'Set-Cookie', 'c=1', 'Set-Cookie', 'd=2', 'Connection', 'x-gone',
      'X-Gone', '1', 'Keep-Alive', 'timeout=9', 'Content-Length', '9999'.length]);
    res.end(JSON.stringify(req.rawHeaders).length > 0 && 'seen');
    proxy.seen = req.rawHeaders;
  });
  const text = await talk(
    proxy.origin,
    'GET /api/ HTTP/1.1\r\nhOST: shop.test\r\nX-Z: \xe4 1\r\nConnection: close, X-Secret, Content-Length, X-Forwarded-For\r\n' +
      'X-Secret: 1\r\nKeep-Alive: 1\r\nTE: trailers\r\nProxy-Connection: close\r\nX-Y: \r\nX-Forwarded-For: 10.0.0.1\r\n' +
      'X-Forwarded-Proto: https\r\nContent-Length: 0\r\n\r\n',
  );
  assert.deepEqual(proxy.seen, ['host', 'shop.test', 'connection', 'keep-alive', 'X-Z', '\xe4 1', 'X-Y', '',
    'X-Forwarded-For', '10.0.0.1, 127.0.0.1', 'X-Forwarded-Host', 'shop.test', 'X-Forwarded-Proto', 'http']);
  const [head] = text.split('\r\n\r\n');
  assert.match(head, /^HTTP\/1\.1 200 OK\r\nX-B: 1\r\nx-a: 2\r\nSet-Cookie: c=1\r\nSet-Cookie: d=2\r\n/);
  assert.doesNotMatch(head, /x-gone|timeout=9/i);
  assert.match(head, /\r\nContent-Length: 4\r\n/);
});

test('HEAD, 204 and 304 have no body, whatever their fields say, and the connection goes on', async (t) => {
  const proxy = await proxyFor(t, (req, res) => {
    res.statusCode = Number(req.url.slice(1));
    if (res.statusCode !== 204) res.setHeader('Content-Length', 5);
    res.end(res.statusCode === 200 ? 'hello' : undefined);
  });
  const text = await talk(
    proxy.origin,
    ['HEAD /api/200', 'GET /api/204', 'GET /api/304'].map((line) => `${line} HTTP/1.1\r\nHost: a\r\n\r\n`).join('') +
      'GET /api/200 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  );
  assert.deepEqual(text.match(/HTTP\/1\.1 \d+/g), ['200', '204', '304', '200'].map((status) => `HTTP/1.1 ${status}`));
  assert.equal(text.match(/hello/g).length, 1);
  assert.ok(text.endsWith('hello'));
});

test('a hundred requests one after the other need one connection to the origin', async (t) => {
  const peers = new Set();
  const proxy = await proxyFor(t, (req, res) => {
    peers.add(req.socket.remotePort);
    res.end();
  });
  for (let i = 0; i < 100; i += 1) await (await proxy.get('/api/')).arrayBuffer();
  assert.equal(peers.size, 1);
});

test('a thousand pipelined requests get their responses in order', async (t) => {
  const proxy = await proxyFor(t, (req, res) => res.end(`<${req.url}>`));
  const requests = Array.from({ length: 1000 }, (_, index) => `GET /api/${index} HTTP/1.1\r\nHost: a\r\n\r\n`);
  const text = await talk(proxy.origin, requests.join(''), (so_far) => so_far.includes('</999>'));
  assert.deepEqual(text.match(/<\/\d+>/g), requests.map((_, index) => `</${index}>`));
});

test('a client of HTTP/1.0 can keep its connection, and gets no chunks', async (t) => {
  const proxy = await proxyFor(t, (req, res) => {
    res.setHeader('Content-Length', 2);
    res.end('ok');
  });
  const request = 'GET /api/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n';
  const text = await talk(proxy.origin, `${request}${request}GET /api/ HTTP/1.0\r\n\r\n`);
  assert.equal(text.match(/HTTP\/1\.1 200/g).length, 3);
  assert.equal(text.match(/Connection: keep-alive/g).length, 2);
});

test('interim responses are passed on: 100 before the body is sent', async (t) => {
  const proxy = await proxyFor(t, async (req, res) => res.end(await hashOf(req)));
  const request = http.request(`${proxy.origin}/api/`, {
    method: 'POST',
    headers: { Expect: '100-continue', 'Content-Length': LARGE.length },
  });
  request.flushHeaders();
  await once(request, 'continue');
  request.end(LARGE);
  const [response] = await once(request, 'response');
  assert.equal((await response.setEncoding('latin1').toArray()).join(''), sha256(LARGE));
});

test('a head in many pieces, and one with its body in the same read, are read alike', async (t) => {
  const server = net.createServer((socket) => {
    socket.once('data', async () => {
      for (const byte of 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=1\r\nabc\r\n0\r\nX-T: 1\r\n\r\n') {
        socket.write(byte);
        await new Promise(setImmediate);
      }
    });
  });
  const proxy = await serviceFor(t, directory, { ORIGIN: await listenFor(t, server) });
  assert.equal(await (await proxy.get('/api/')).text(), 'abc');
});

test('a response that ends with its connection is whole', async (t) => {
  const server = net.createServer((socket) => {
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\n\r\nto the end'));
  });
  const proxy = await serviceFor(t, directory, { ORIGIN: await listenFor(t, server) });
  assert.equal(await (await proxy.get('/api/')).text(), 'to the end');
});

test('what an origin sends beyond its response reaches nobody', async (t) => {
  const proxy = await proxyForBytes(
    t,
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison',
  );
  for (let i = 0; i < 3; i += 1) assert.equal(await (await proxy.get('/api/')).text(), 'ok');
});
