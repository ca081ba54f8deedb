'use strict';

// What every target promises and the lab relies on, as tests: a health check, a count of requests, a clean end. The
// responses of a target are for its own tests.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const net = require('node:net');
const test = require('node:test');
const { serviceFor, startService } = require('./service');

/** Registers these tests for the target in `directory`, started by `entry`, which counts requests to `path`. */
function testContract(directory, { entry = 'server.js', env = {}, path = '/' } = {}) {
  test(`${entry}: it listens at HOST, health answers 200 and is not counted, the count is that of requests to ${path}`, async (t) => {
    const service = await serviceFor(t, directory, { ...env, HOST: '127.0.0.2' }, entry);
    assert.equal(new URL(service.origin).hostname, '127.0.0.2');
    assert.equal((await service.get('/healthz')).status, 200);
    assert.deepEqual(await (await service.get('/count')).json(), { requests: 0 });
    for (let i = 0; i < 3; i += 1) await (await service.get(path)).arrayBuffer();
    assert.deepEqual(await (await service.get('/count')).json(), { requests: 3 });
  });

  test(`${entry}: SIGTERM ends the service cleanly, even when a client never finishes its request`, async () => {
    const service = await startService(directory, env, entry);
    const socket = net.connect(new URL(service.origin).port, '127.0.0.1');
    socket.on('error', () => {}); // the service is to cut this client off
    await once(socket, 'connect');
    socket.write('GET / HTTP/1.1\r\n');
    await (await service.get(path)).arrayBuffer();
    assert.equal(await service.stop(), 0);
    socket.destroy();
  });
}

module.exports = { testContract };
