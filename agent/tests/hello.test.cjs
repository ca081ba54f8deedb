'use strict';

// What the agent says that it is in.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { AGENT, fixture, labFor, serviceFor, start } = require('./fixtures/lab.cjs');

test('a service says which process and thread it is, its versions, and what is set for it', async (t) => {
  const lab = await labFor(t);
  const env = lab.env({ NODE_ENV: 'production', UV_THREADPOOL_SIZE: '7', NODE_OPTIONS: '--max-old-space-size=200' });
  const service = start(t, ['--no-warnings', fixture('server.cjs')], env);
  const { hello } = await lab.agent();
  const { node, v8, uv, openssl } = process.versions;
  assert.deepEqual(hello, {
    v: 1, type: 'hello', pid: service.pid, ppid: process.pid, thread: 0, role: 'service', threadId: service.pid, clusterId: null,
    pm2: null, versions: { node, v8, uv, openssl }, nodeEnv: 'production', uvThreadpoolSize: '7',
    main: fixture('server.cjs'),
  });
});

test('an ES module tells what it has set itself when it is armed', async (t) => {
  const lab = await labFor(t);
  await serviceFor(t, [fixture('server.mjs')], lab.env());
  const agent = await lab.agent();
  assert.equal(agent.hello.main, fixture('server.mjs'));
  const armed = await agent.arm({ id: 1, kind: 'counters' });
  assert.equal(armed.nodeEnv, 'set late');
});

test('who asks for the agent twice has one', async (t) => {
  const lab = await labFor(t);
  const service = await serviceFor(t, ['--require', AGENT, fixture('server.cjs')], lab.env());
  await lab.agent();
  await service.get('/');
  assert.equal(lab.agents.length, 1);
});

test('a service becomes a primary with its first worker, not with any child, and workers have their numbers', async (t) => {
  const lab = await labFor(t);
  const service = start(t, [fixture('cluster.cjs')], lab.env());
  const primary = await lab.agent();
  assert.equal(primary.hello.role, 'service');
  service.child.stdin.write('go\n');
  for (const clusterId of [1, 2]) {
    const { hello } = await lab.agent((seen) => seen.clusterId === clusterId);
    assert.equal(hello.role, 'worker');
    assert.equal(hello.ppid, service.pid);
  }
  // Node.js 18 does not tell of child processes, so that an agent in it looks when it is asked for something.
  if (process.versions.node.startsWith('18.')) primary.order({ type: 'nothing' });
  assert.equal((await primary.next('role')).role, 'primary');
  assert.equal((await primary.arm({ id: 1, kind: 'counters' })).type, 'armed');
  assert.equal(primary.messages.filter(({ type }) => type === 'role').length, 1);
});

test('a worker thread speaks for itself', async (t) => {
  const lab = await labFor(t);
  const service = start(t, [fixture('threads.cjs')], lab.env());
  const { hello } = await lab.agent(({ thread }) => thread > 0);
  assert.equal(hello.role, 'thread');
  assert.equal(hello.pid, service.pid);
  assert.equal(hello.main, fixture('threads.cjs'));
  assert.ok(fs.existsSync(`/proc/${service.pid}/task/${hello.threadId}`) && hello.threadId !== service.pid);
});

test('npm, found by a link, is a tool and is not profiled', async (t) => {
  const lab = await labFor(t);
  const folder = lab.file('lib/node_modules/npm/bin');
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, 'npm-cli.js'), 'setInterval(() => {}, 1000);');
  fs.symlinkSync(path.join(folder, 'npm-cli.js'), lab.file('npm'));
  start(t, [lab.file('npm')], lab.env());
  const agent = await lab.agent();
  assert.equal(agent.hello.role, 'tool');
  const { type, reason } = await agent.arm({ id: 1, kind: 'cpu', file: lab.file('npm.cpuprofile') });
  assert.deepEqual([type, reason], ['failed', 'this process starts services and is not one']);
});

const pm2 = path.join(__dirname, '../../targets/node_modules/pm2/bin/pm2');
const skip = !fs.existsSync(pm2) && 'PM2 is not installed: run scripts/setup pm2';
for (const [mode, role] of [['fork', 'service'], ['cluster', 'worker']]) {
  test(`PM2 in ${mode} mode: its daemon is a tool, what it runs is a ${role} of its own name`, { skip }, async (t) => {
    const lab = await labFor(t);
    const script = fixture('server.cjs');
    const file = lab.file('ecosystem.json');
    const app = { name: 'shop', script, exec_mode: mode, instances: mode === 'cluster' ? 2 : 1, vizion: false };
    fs.writeFileSync(file, JSON.stringify({ apps: [app] }));
    const env = { ...lab.env(), PM2_HOME: lab.file('pm2'), PM2_DISCRETE_MODE: 'true', PM2_DISABLE_VERSION_CHECK: 'true' };
    try {
      assert.equal((await start(t, [pm2, 'start', file], env).ended).code, 0);
      const { hello } = await lab.agent((seen) => seen.pm2 === 'shop');
      assert.equal(hello.role, role);
      assert.equal(hello.main, script);
      const daemon = await lab.agent(({ pid }) => pid === hello.ppid);
      assert.equal(daemon.hello.role, 'tool');
      if (mode === 'cluster') await lab.agent((seen) => seen.role === 'worker' && seen.pid !== hello.pid);
    } finally {
      spawnSync(process.execPath, [pm2, 'kill'], { env: { ...process.env, ...env } });
    }
  });
}
