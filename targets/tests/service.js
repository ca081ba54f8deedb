'use strict';

// Runs one target as a process of its own, for its tests. They judge the service as the lab does, over HTTP and by its
// exit code, and never require its modules. This file must not know a particular target.

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { createInterface } = require('node:readline');

/**
 * Starts `entry` of `directory` on a free port.
 *
 * `env` is added to a copy of our own environment without NODE_ENV, which each test sets itself. The result has its
 * `origin`, its `pid`, `get(path)` → fetch's Response, `nextLine()`, which waits for the next line of its output, and
 * `stop()`, which sends SIGTERM and returns the exit code (null if a signal ended the process).
 */
async function startService(directory, env = {}, entry = 'server.js') {
  const { NODE_ENV, ...inherited } = process.env;
  const child = spawn(process.execPath, [entry], {
    cwd: directory,
    env: { ...inherited, ...env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const nextLine = async () => (await lines.next()).value;
  const origin = await announcedOrigin(child, nextLine);
  return {
    origin,
    pid: child.pid,
    get: (path) => fetch(origin + path),
    nextLine,
    stop: async () => {
      const exit = once(child, 'exit');
      child.kill('SIGTERM');
      const [code] = await exit;
      return code;
    },
  };
}

// A service announces its address in its first line; one that ends before that has failed to start.
async function announcedOrigin(child, nextLine) {
  for (let line = await nextLine(); line !== undefined; line = await nextLine()) {
    const match = line.match(/http:\/\/\S+/);
    if (match) return match[0];
  }
  throw new Error(`${child.spawnargs.join(' ')} ended without announcing its address`);
}

/** Starts a service for one test, and stops it after the test whether it passed or not. */
async function serviceFor(test, directory, env, entry) {
  const service = await startService(directory, env, entry);
  test.after(() => service.stop());
  return service;
}

module.exports = { startService, serviceFor };
