'use strict';

// Both configurations of nginx, rendered as the lab does: nginx accepts them without a warning, and they do what the Node
// proxy is compared with.

const assert = require('node:assert/strict');
const { spawn, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { listenFor } = require('../../tests/wire');

const directory = path.join(__dirname, '..');

async function freePort() {
  const server = net.createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address();
  await once(server.close(), 'close');
  return port;
}

function render(template, values) {
  const text = fs.readFileSync(path.join(directory, template), 'utf8');
  return text.replaceAll(/\{\{(.+?)\}\}/g, (all, name) => {
    assert.ok(name in values, `${template}: placeholder ${all}`);
    return values[name];
  });
}

/** Starts nginx with a template before `ORIGIN`; gives its URL, its folder and what it has said. */
async function nginxFor(t, template, ORIGIN) {
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'nginx-'));
  const port = await freePort();
  const values = { port, address: '127.0.0.1', 'origin.port': new URL(ORIGIN).port, workers: 1, scratch };
  fs.writeFileSync(path.join(scratch, 'nginx.conf'), render(template, values));
  const args = ['-p', scratch, '-c', path.join(scratch, 'nginx.conf'), '-e', 'stderr'];
  const checked = spawnSync('nginx', [...args, '-t'], { encoding: 'utf8' });
  assert.equal(checked.status, 0, checked.stderr);
  assert.doesNotMatch(checked.stderr, /\[(warn|error|emerg|alert)\]/);
  const child = spawn('nginx', args, { stdio: ['ignore', 'inherit', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk) => (said += chunk));
  t.after(async () => {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'exit');
    fs.rmSync(scratch, { recursive: true });
  });
  const url = `http://127.0.0.1:${port}`;
  while (!(await fetch(`${url}/healthz`).catch(() => null))?.ok) {
    assert.equal(child.exitCode, null, said);
    await sleep(20);
  }
  return { url, said: () => said };
}

async function originFor(t) {
  const seen = { connections: new Set(), requests: [] };
  const origin = http.createServer((req, res) => {
    seen.connections.add(req.socket.remotePort);
    seen.requests.push({ version: req.httpVersion, url: req.url, headers: req.headers });
    res.setHeader('Content-Length', 2);
    res.end('ok');
  });
  return { ORIGIN: await listenFor(t, origin), seen };
}

for (const [template, version, connections] of [
  ['nginx-bare.conf.tmpl', '1.0', 5],
  ['nginx-pool.conf.tmpl', '1.1', 1],
]) {
  test(`${template}: quiet, five requests over ${connections} connection(s) of HTTP/${version}`, async (t) => {
    const { ORIGIN, seen } = await originFor(t);
    const nginx = await nginxFor(t, template, ORIGIN);
    for (let i = 0; i < 5; i += 1) {
      const response = await fetch(`${nginx.url}/api/x`);
      assert.equal(await response.text(), 'ok');
    }
    assert.equal(seen.connections.size, connections);
    assert.equal(seen.requests[0].version, version);
    assert.equal(seen.requests[0].url, '/x');
    if (version === '1.1') {
      assert.equal(seen.requests[0].headers.host, new URL(nginx.url).host);
      assert.equal(seen.requests[0].headers['x-forwarded-for'], '127.0.0.1');
      assert.equal(seen.requests[0].headers['x-forwarded-proto'], 'http');
    }
    assert.equal(nginx.said(), '');
  });
}
