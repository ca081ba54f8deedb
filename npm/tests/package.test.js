// The packages as they are published: made, installed without a network into an empty folder, and used there without cargo.

import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { on, once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BINARY = join(process.env.CARGO_TARGET_DIR ?? join(ROOT, 'target'), 'debug/proofload');

const folder = mkdtempSync(join(tmpdir(), 'proofload-packages-'));
const home = join(folder, 'home');
const env = { HOME: home, PATH: join(folder, 'bin') };
const command = join(home, 'node_modules/proofload/bin/proofload.js');
let proofload;
let url;
let served = 0;
const server = createServer((request, response) => {
  served += 1;
  response.end('hello\n');
});

before(async () => {
  for (const made of ['home', 'bin', 'tarballs']) mkdirSync(join(folder, made));
  for (const name of ['node', 'npm', 'npx', 'sh']) {
    symlinkSync(execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim(), join(env.PATH, name));
  }
  const stripped = join(folder, 'proofload');
  execFileSync('strip', ['-o', stripped, BINARY]);
  const tarballs = join(folder, 'tarballs');
  execFileSync(process.execPath, [join(ROOT, 'npm/pack.js'), tarballs, `linux-${process.arch}=${stripped}`]);
  const paths = readdirSync(tarballs).map((name) => join(tarballs, name));
  execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error', ...paths], { cwd: home, env });

  proofload = await import(pathToFileURL(join(home, 'node_modules/proofload/index.js')));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${server.address().port}/`;
});

after(() => {
  server.close();
  server.closeAllConnections();
  rmSync(folder, { recursive: true });
});

test('npx runs the binary', () => {
  const printed = execFileSync('npx', ['--offline', 'proofload', '--version'], { cwd: home, env, encoding: 'utf8' });
  assert.match(printed, /^proofload \d+\.\d+\.\d+/);
});

test('the command ends with the exit code of the binary, also by Ctrl-C', async () => {
  assert.equal(spawnSync(process.execPath, [command, 'load', '--no-such-flag']).status, 2);

  const before = served;
  const child = spawn(process.execPath, [command, 'load', url, '--duration', '60s', '--json'], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
  let printed = '';
  child.stdout.on('data', (piece) => { printed += piece; });
  while (served === before) await once(server, 'request');
  process.kill(-child.pid, 'SIGINT');
  assert.deepEqual(await once(child, 'close'), [130, null]);
  assert.equal(JSON.parse(printed).interrupted, true, 'it had the time to print what it measured');
});

/** Waits for the first request of a path that nobody asked for before. */
async function arrived(path) {
  for await (const [request] of on(server, 'request')) if (request.url === path) return;
}

test('a signal to the command alone stops the binary', async () => {
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGTERM']) {
    const child = spawn(process.execPath, [command, 'load', `${url}${signal}`, '--duration', '60s', '--json'], { stdio: ['ignore', 'pipe', 'ignore'] });
    let printed = '';
    child.stdout.on('data', (piece) => { printed += piece; });
    await arrived(`/${signal}`);
    child.kill(signal);
    assert.deepEqual(await once(child, 'close'), [130, null], signal);
    assert.equal(JSON.parse(printed).interrupted, true, signal);
  }
});

test('the binary stops with the process that runs it, however that ends', async () => {
  const calls = (at, before = '') => ['--input-type=module', '--eval',
    `import { load } from 'proofload'; ${before} await load('${url}host-${at}', { duration: '60s', connections: 2 });`];
  const hosts = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGKILL'].map((signal, at) => [calls(at), signal]);
  hosts.push([[command, 'load', `${url}host-4`, '--duration', '60s', '--connections', '2'], 'SIGKILL']);
  hosts.push([calls(5, 'setTimeout(() => process.exit(), 2000);'), null]);
  const open = () => new Promise((resolve) => { server.getConnections((error, count) => resolve(count)); });
  for (const [at, [args, signal]] of hosts.entries()) {
    const host = spawn(process.execPath, args, { cwd: home, stdio: 'ignore' });
    const ended = once(host, 'close');
    await arrived(`/host-${at}`);
    if (signal) host.kill(signal);
    await ended;
    for (const end = Date.now() + 10_000; await open() > 0 && Date.now() < end;) await new Promise((resolve) => { setTimeout(resolve, 50); });
    assert.equal(await open(), 0, `${args.at(-1)} ${signal}`);
  }
});

test('many calls at once print no warning', () => {
  const calls = `import { load } from 'proofload'; const control = { signal: AbortSignal.timeout(60_000) };
    await Promise.all(Array.from({ length: 12 }, () => load('${url}', { requests: 20, connections: 1 }, control)));`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', calls], { cwd: home });
  let stderr = '';
  child.stderr.on('data', (piece) => { stderr += piece; });
  return once(child, 'close').then(([code]) => assert.deepEqual([code, stderr], [0, '']));
});

test('a platform without a binary is told what does not work there', () => {
  const elsewhere = 'data:text/javascript,Object.defineProperty(process,"platform",{value:"darwin"})';
  const { status, stderr } = spawnSync(process.execPath, ['--import', elsewhere, command, '--version'], { encoding: 'utf8' });
  assert.equal(status, 6);
  assert.match(stderr, /^error: proofload \S+ does not run on darwin-\w+: .*Linux.*\nhint: .*linux-/);
});

test('a binary that lost its right to be executed is named, with what to do', () => {
  const path = join(home, 'node_modules/@proofload', `linux-${process.arch}`, 'proofload');
  chmodSync(path, 0o644);
  const { status, stderr } = spawnSync(process.execPath, [command, '--version'], { encoding: 'utf8' });
  chmodSync(path, 0o755);
  assert.equal(status, 6);
  assert.match(stderr, /^error: .*proofload may not be executed\nhint: install /);
});

test('load gives what was measured', async () => {
  const before = served;
  const measured = await proofload.load(url, { duration: '500ms', connections: 4, header: ['A: 1', 'B: 2'], latency: undefined });
  assert.equal(measured.connections, 4);
  assert.ok(measured.throughput_per_s > 0);
  assert.ok(served > before);
});

test('an address that begins with a dash is no flag', async () => {
  // As a host it has no address: no request is sent.
  const calls = [
    [() => proofload.load('--version'), 4],
    [() => proofload.run('--version'), 2],
    [() => proofload.compare(['--version', '--help']), 3],
  ];
  for (const [call, code] of calls) {
    const error = await call().catch((error) => error);
    assert.deepEqual([error.name, error.exitCode], ['ProofloadError', code], error.stack);
    assert.match(error.message, /--version/);
  }
});

test('a failure is an error with the exit code and what was said', async () => {
  process.env.CLICOLOR_FORCE = '1';
  const unknown = await proofload.load(url, { noSuchFlag: true }).catch((error) => error);
  delete process.env.CLICOLOR_FORCE;
  assert.ok(unknown instanceof proofload.ProofloadError);
  assert.equal(unknown.exitCode, 2);
  assert.match(unknown.message, /--no-such-flag/);

  const limited = await proofload.load(url, { duration: '500ms', limit: 'throughput > 1000000/s' }).catch((error) => error);
  assert.equal(limited.exitCode, 1);
  assert.equal(limited.message, 'a limit fails: throughput > 1000000/s');
  assert.equal(limited.report.gate.limits.length, 1);
});

test('an abort ends a comparison in its own time', async () => {
  const abort = new AbortController();
  const events = [];
  const onEvent = (event) => {
    events.push(Object.keys(event).at(-1));
    if ('slice' in event) abort.abort();
  };
  const flags = { out: join(home, 'record'), budget: '60s' };
  const error = await proofload.compare([url, url], flags, { onEvent, signal: abort.signal }).catch((error) => error);
  assert.equal(error.name, 'AbortError', error.stack);
  assert.equal(error.exitCode, 130);
  assert.equal(error.report.ended.reason, 'interrupted');
  assert.equal(events[0], 'started');
  assert.deepEqual(events.slice(-2), ['ended', 'report']);

  const again = await proofload.load(url, {}, { signal: AbortSignal.abort('enough') }).catch((error) => error);
  assert.deepEqual([again.name, again.exitCode, again.cause], ['AbortError', 130, 'enough']);
});

test('an error of onEvent stops the run and is what the promise is rejected with', async () => {
  const onEvent = () => { throw new RangeError('mine'); };
  await assert.rejects(proofload.compare([url, url], { out: join(home, 'other'), budget: '60s' }, { onEvent }), { name: 'RangeError', message: 'mine' });
});

test('the types are those of what is printed', () => {
  writeFileSync(join(home, 'use.mts'), `
    import { compare, load, type Load, ProofloadError, run } from 'proofload';
    const report = await run('experiment.toml', { explain: true }, {
      onEvent: (event) => { if ('generator_lost' in event) { const lost: string = event.generator_lost.generator; } },
    });
    const ratio: number | undefined = report.comparisons[0]?.estimate?.ratio;
    const measured: Load = await run<Load>('measure.toml');
    const { throughput_per_s } = await load('http://127.0.0.1/', { expectStatus: [200, 404] }, { signal: AbortSignal.timeout(1) });
    compare(['a', 'b']).catch((error: ProofloadError) => error.exitCode);
    // @ts-expect-error: one command is not a list of them
    compare('a');
    // @ts-expect-error: no report has this
    report.no_such_field;
  `);
  const tsc = join(ROOT, 'web/node_modules/.bin/tsc');
  const { stdout, status } = spawnSync(tsc, ['--noEmit', '--strict', '--target', 'es2023', '--module', 'nodenext', 'use.mts'], { cwd: home, encoding: 'utf8' });
  assert.equal(status, 0, stdout);
});
