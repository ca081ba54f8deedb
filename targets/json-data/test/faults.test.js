'use strict';

// A source that cannot be read is an error of its request alone. Two gigabytes by promise end the same way, after more
// memory and time than a test may take: what becomes of the request is tested on sources that are bad at once.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const http = require('node:http');
const test = require('node:test');
const { serviceFor } = require('../../tests/service');
const { dataFolder, directory } = require('../../tests/json-data');

const ROUTES = ['/data/large/stream/00000', '/data/large/promise/00000'];
const GOOD = '[{"zipcode":"00000"},{"zipcode":"00001"}]';
const DATA = dataFolder();

const FAULTS = {
  'breaks off': (res) => {
    res.setHeader('content-length', GOOD.length);
    res.write(GOOD.slice(0, 30), () => res.destroy());
  },
  'ends too early': (res) => res.end(GOOD.slice(0, 30)),
  'is no JSON': (res) => res.end('[{"zipcode":"00000"},{"zipcode":0000x}]'),
  'is empty': (res) => res.end(),
  'is refused': (res) => res.writeHead(503).end('[]'),
};

/** An upstream that answers with what `behaviour.answer` is at the moment, and the application that reads from it. */
async function startWith(t, behaviour) {
  const upstream = http.createServer((req, res) => behaviour.answer(res));
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  t.after(() => {
    upstream.close();
    upstream.closeAllConnections();
  });
  const UPSTREAM = `http://127.0.0.1:${upstream.address().port}`;
  return { upstream, service: await serviceFor(t, directory, { DATA, UPSTREAM }, 'bin/www-single') };
}

async function assertFails(service, route) {
  const response = await service.get(route);
  const { error } = await response.json();
  assert.equal(response.status, 500, route);
  assert.match(error.code, /^\w+$/, route);
  assert.ok(error.message.length > 0, route);
  return error;
}

test('a source that is bad is an answer 500 with the error, and the next request is answered', async (t) => {
  const behaviour = {};
  const { service } = await startWith(t, behaviour);
  for (const [name, fault] of Object.entries(FAULTS)) {
    await t.test(name, async () => {
      for (const route of ROUTES) {
        behaviour.answer = fault;
        await assertFails(service, route);
        behaviour.answer = (res) => res.end(GOOD);
        assert.equal(await (await service.get(route)).text(), '[{"zipcode":"00000"}]');
      }
    });
  }
});

test('an upstream that is gone is told by its code', async (t) => {
  const { service, upstream } = await startWith(t, {});
  upstream.close();
  for (const route of ROUTES) assert.equal((await assertFails(service, route)).code, 'ECONNREFUSED');
});

test('a client that leaves ends the reading for it', async (t) => {
  const behaviour = {};
  const { service } = await startWith(t, behaviour);
  for (const route of ROUTES) {
    const answering = new Promise((resolve) => {
      behaviour.answer = resolve;
    });
    const client = new AbortController();
    const given = fetch(service.origin + route, { signal: client.signal });
    const upstreamAnswer = await answering;
    upstreamAnswer.write('['); // and then nothing: whoever reads on waits for ever
    const closed = once(upstreamAnswer, 'close');
    client.abort();
    await assert.rejects(given, { name: 'AbortError' });
    await closed;
  }
});
