// Runs an unmodified Node.js program as several workers of one cluster: loaded with --require before the program, in the
// primary process only. There it takes the place of the program, which the workers run; they never see this file. It
// must not restart a worker: a measurement that lost one has to be told, not mended.
'use strict';
const cluster = require('node:cluster');
const Module = require('node:module');

const GRACE_MS = 1500;

const workers = Number(process.env.PROOFLOAD_WORKERS);
delete process.env.PROOFLOAD_WORKERS;

// Node calls this to run the main program, whether it is a CommonJS or an ES module.
Module.runMain = () => {
  cluster.setupPrimary({
    exec: process.argv[1],
    args: process.argv.slice(2),
    execArgv: withoutThisFile(process.execArgv),
  });
  let left = workers;
  let ending = false;

  cluster.on('exit', (worker, code, signal) => {
    left -= 1;
    if (!ending) {
      const how = signal ?? `exit code ${code}`;
      process.stderr.write(
        `proofload: worker ${worker.process.pid} ended with ${how}; ` +
          `${left} of ${workers} workers are left, and it is not started again\n`,
      );
    }
    if (left === 0) process.exit(ending ? 0 : 1);
  });

  // Whoever ends the service asks this process alone and relies on it to end the workers.
  process.on('SIGTERM', () => {
    ending = true;
    for (const worker of Object.values(cluster.workers)) worker.process.kill('SIGTERM');
    // A program that closes its servers and waits for its end would wait for our channel as well. To close that ends
    // a worker whatever it still does, so it has some time of its own before.
    setTimeout(() => {
      for (const worker of Object.values(cluster.workers)) worker.disconnect();
    }, GRACE_MS).unref();
  });

  for (let started = 0; started < workers; started += 1) cluster.fork();
};

function withoutThisFile(execArgv) {
  const at = execArgv.findIndex((word, index) => word === '--require' && execArgv[index + 1] === __filename);
  return at < 0 ? execArgv : [...execArgv.slice(0, at), ...execArgv.slice(at + 2)];
}
