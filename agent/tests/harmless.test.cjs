'use strict';

// What the agent must not do to a service, whatever happens to either.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const test = require('node:test');
const { AGENT, fixture, labFor, serviceFor, start, traces } = require('./fixtures/lab.cjs');

async function outcome(t, args, env) {
  const ended = await start(t, args, env).ended;
  return { ...ended, stderr: ended.stderr.replace(/\(node:\d+\)/g, '(node)') };
}

test('output, exit code and all that a program can see of itself stay as they are', async (t) => {
  const lab = await labFor(t);
  const programs = [
    [fixture('facts.cjs')],
    ['--stack-trace-limit=3', fixture('facts.cjs'), 'an argument'],
    ['-e', 'console.log(1); process.exit(7)'],
    ['-e', 'setTimeout(() => { throw new Error("mine") }, 20)'],
    ['-e', 'Promise.reject(new Error("unhandled"))'],
    ['-e', 'process.on("exit", (code) => console.log("ends with", code)); process.once("beforeExit", () => console.log("before"))'],
    ['-e', 'process.kill(process.pid, "SIGTERM"); setInterval(() => {}, 1000)'],
    ['--input-type=module', '-e', 'await new Promise(() => {})'],
  ];
  for (const args of programs) {
    const alone = await outcome(t, args);
    assert.deepEqual(await outcome(t, args, lab.env()), alone, args.join(' '));
    // Nobody listens; and where there is no folder for a socket at all.
    for (const address of [lab.file('missing.sock'), '/nowhere/lab.sock', `/${'long'.repeat(100)}`]) {
      assert.deepEqual(await outcome(t, args, { ...lab.env(), PROOFLOAD_AGENT: address }), alone, address);
    }
  }
  assert.deepEqual(await outcome(t, programs[0], { NODE_OPTIONS: `--require ${JSON.stringify(AGENT)}` }), await outcome(t, programs[0]));
  await lab.agent();
});

test('a process that is armed ends when it would, and says nothing of it', async (t) => {
  const lab = await labFor(t);
  const program = ['-e', 'process.stdin.once("data", () => { console.log("told"); process.stdin.destroy(); })'];
  for (const kind of ['cpu', 'heap', 'counters']) {
    const run = start(t, program, lab.env());
    const agent = await lab.agent(({ pid }) => pid === run.pid);
    assert.equal((await agent.arm({ id: 1, kind, file: lab.file('a.profile') })).type, 'armed');
    run.child.stdin.write('end\n');
    assert.deepEqual(await run.ended, { code: 0, signal: null, stdout: 'told\n', stderr: '' });
    await agent.closed;
  }
});

test('a lab that goes takes all with it that was armed', async (t) => {
  for (const kind of ['cpu', 'heap', 'counters']) {
    const lab = await labFor(t);
    const service = await serviceFor(t, [fixture('server.cjs')], lab.env());
    const agent = await lab.agent();
    const armed = await agent.arm({ id: 1, kind, file: lab.file('a.profile') });
    assert.equal(armed.type, 'armed');
    assert.equal(JSON.parse(await service.get('/traces')).listened, true);
    lab.close();
    assert.deepEqual(await traces(service), { listened: false, timers: [] });
    service.child.kill('SIGTERM');
    const { code, stderr } = await service.ended;
    assert.deepEqual([code, stderr, fs.existsSync(lab.file('a.profile'))], [0, '', false]);
  }
});

// What they are, and the exit code after SIGTERM: null where the signal ends them.
const ODD = [
  ['frozen intrinsics', 'server.cjs', { NODE_OPTIONS: '--frozen-intrinsics --no-warnings' }, 0],
  ['globals that the service replaces', 'overwrites.cjs', {}, null],
];
for (const [what, name, settings, code] of ODD) {
  test(`${what}: it serves, is profiled, ends as ever, and prints nothing of it`, async (t) => {
    const lab = await labFor(t);
    const service = await serviceFor(t, [fixture(name)], lab.env(settings));
    const agent = await lab.agent();
    for (const kind of ['cpu', 'heap', 'counters']) {
      const file = lab.file(`a.${kind}`);
      assert.equal((await agent.arm({ id: kind, kind, file })).type, 'armed');
      assert.equal(await service.get('/'), 'well');
      const captured = await agent.disarm(kind);
      assert.deepEqual([captured.type, captured.requests], ['captured', 1], captured.reason);
      if (kind !== 'counters') JSON.parse(fs.readFileSync(file, 'utf8'));
    }
    service.child.kill('SIGTERM');
    const ended = await service.ended;
    assert.deepEqual([ended.code, ended.stderr], [code, '']);
  });
}

test('a service that closes what it does not know goes on with what it opens in its place', async (t) => {
  const lab = await labFor(t);
  const file = lab.file('own');
  const run = start(t, [fixture('closes.cjs'), file], lab.env());
  const agent = await lab.agent(({ pid }) => pid === run.pid);
  run.child.stdin.write('close\n');
  await run.line(/closed 1 true/);
  await agent.closed;
  const [, port] = await run.line(/listening (\d+)/);
  assert.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'well');
  run.child.kill('SIGTERM');
  const { code, stderr } = await run.ended;
  assert.deepEqual([code, stderr, fs.readFileSync(file, 'utf8')], [0, '', '']);
});
