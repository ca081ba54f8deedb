#!/usr/bin/env node
// The command `proofload`: becomes the binary, or runs it where Node.js cannot do that (before 22.15).

import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { binary, environment } from '../binary.js';

const args = process.argv.slice(2);
let path;
try {
  path = binary();
  process.execve?.(path, [path, ...args], process.env);
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exit(6);
}

const child = spawn(path, args, { env: environment(), stdio: 'inherit' });
// Where a terminal has sent the signal to the binary too, the binary takes this one for an echo.
for (const signal of ['SIGINT', 'SIGHUP', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('error', (error) => {
  console.error(`error: ${path}: ${error.message}`);
  process.exit(6);
});
child.on('close', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
