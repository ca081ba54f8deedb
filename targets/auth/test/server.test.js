'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const test = require('node:test');
const { testContract } = require('../../tests/contract');
const { serviceFor } = require('../../tests/service');

const ROUTES = ['/auth', '/auth2'];
const directory = path.join(__dirname, '..');

async function status(service, route, parameters) {
  const response = await service.get(`${route}?${new URLSearchParams(parameters)}`);
  await response.arrayBuffer();
  return response.status;
}

test('both routes let in the user that is there from the start, and nobody else', async (t) => {
  const service = await serviceFor(t, directory);
  for (const route of ROUTES) {
    assert.equal(await status(service, route, { username: 'ada', password: 'lovelace' }), 200, route);
    assert.equal(await status(service, route, { username: 'ada', password: 'Lovelace' }), 401, route);
    assert.equal(await status(service, route, { username: 'bob', password: 'lovelace' }), 401, route);
  }
});

test('requests without one name and one password are refused', async (t) => {
  const service = await serviceFor(t, directory);
  const incomplete = ['', 'username=ada', 'password=lovelace', 'username=ada&password=', 'username=ada&username=b&password=c'];
  for (const route of ['/newUser', ...ROUTES]) {
    for (const query of incomplete) {
      assert.equal(await status(service, route, query), 400, `${route}?${query}`);
    }
  }
});

test('a new user is let in, and nobody else takes the name', async (t) => {
  const service = await serviceFor(t, directory);
  const grace = { username: 'grace', password: 'h&pper €' };
  assert.equal(await status(service, '/newUser', grace), 200);
  assert.equal(await status(service, '/newUser', { username: 'grace', password: 'other' }), 409);
  for (const route of ROUTES) {
    assert.equal(await status(service, route, grace), 200, route);
    assert.equal(await status(service, route, { username: 'grace', password: 'other' }), 401, route);
  }
});

test('while /auth2 is at work the service answers others', async (t) => {
  const service = await serviceFor(t, directory, { UV_THREADPOOL_SIZE: '1' });
  const ended = [];
  const ending = (name) => (value) => {
    ended.push(name);
    return value;
  };
  // One thread takes eight turns; the ping that is sent last has to wait for none of them.
  const ada = { username: 'ada', password: 'lovelace' };
  const logins = Array.from({ length: 8 }, () => status(service, '/auth2', ada).then(ending('auth2')));
  const ping = service.get('/ping').then((response) => response.text()).then(ending('ping'));
  assert.deepEqual(await Promise.all(logins), Array(8).fill(200));
  assert.equal(await ping, 'pong');
  assert.notEqual(ended.at(-1), 'ping', ended.join(' '));
});

testContract(directory, { path: '/ping' });
