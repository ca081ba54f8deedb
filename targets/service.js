'use strict';

// Runs one target as its own process, for that target's tests: the service is judged as the lab sees it, over
// HTTP and by its exit, never by requiring its modules. It must not know anything of a particular target.

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { createInterface } = require('node:readline');

/**
 * Starts `server.js` of `directory` on a free port.
 *
 * `env` is laid over a copy of our own environment from which NODE_ENV is taken, so that a test says itself what it
 * means. The answer has its `origin`, `get(path)` → fetch's Response, the `lines` of its standard output so far, and
 * `stop()`, which sends SIGTERM and gives the exit code (null if a signal ended the process).
 */
async function startService(directory, env = {}) {
  const { NODE_ENV, ...inherited } = process.env;
  const child = spawn(process.execPath, ['server.js'], {
    cwd: directory,
    env: { ...inherited, ...env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // Read to the end: a service whose pipe is full would stand still.
  const lines = [];
  const output = createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  const origin = await announcedOrigin(child, output);
  return {
    origin,
    lines,
    get: (path) => fetch(origin + path),
    stop: async () => {
      const end = once(child, 'close'); // after the last line, unlike 'exit'
      child.kill('SIGTERM');
      const [code] = await end;
      return code;
    },
  };
}

// A service announces its address in a line of its own; one that ends before that has failed to start.
function announcedOrigin(child, output) {
  return new Promise((resolve, reject) => {
    output.on('line', (line) => {
      const match = line.match(/http:\/\/\S+/);
      if (match) resolve(match[0]);
    });
    output.on('close', () => reject(new Error(`${child.spawnargs.join(' ')} ended without announcing its address`)));
  });
}

/** Starts a service for the length of one test, and stops it after the test however that ended. */
async function serviceFor(test, directory, env) {
  const service = await startService(directory, env);
  test.after(() => service.stop());
  return service;
}

module.exports = { startService, serviceFor };
