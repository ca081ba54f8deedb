'use strict';

// The habits that every target shares and the lab relies on, as tests: health, an own count of requests, a clean end.
// What a target answers is tested by its own tests.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const net = require('node:net');
const test = require('node:test');
const { serviceFor, startService } = require('./service');

/** Registers the tests of the habits for the target in `directory`, started by `entry`, which counts requests to `path`. */
function testHabits(directory, { entry = 'server.js', env = {}, path = '/' } = {}) {
  test(`${entry}: health answers 200 and is not counted, the count tells the requests to ${path}`, async (t) => {
    const service = await serviceFor(t, directory, env, entry);
    assert.equal((await service.get('/healthz')).status, 200);
    assert.deepEqual(await (await service.get('/count')).json(), { requests: 0 });
    for (let i = 0; i < 3; i += 1) await (await service.get(path)).arrayBuffer();
    assert.deepEqual(await (await service.get('/count')).json(), { requests: 3 });
  });

  test(`${entry}: SIGTERM ends the service cleanly, even when a client never finishes its request`, async () => {
    const service = await startService(directory, env, entry);
    const socket = net.connect(new URL(service.origin).port, '127.0.0.1');
    socket.on('error', () => {}); // being cut off is what this client is here for
    await once(socket, 'connect');
    socket.write('GET / HTTP/1.1\r\n');
    await (await service.get(path)).arrayBuffer();
    assert.equal(await service.stop(), 0);
    socket.destroy();
  });
}

module.exports = { testHabits };
