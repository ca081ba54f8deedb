// A pool of worker threads that take requests in turn.
'use strict';
const { isMainThread, parentPort, Worker } = require('worker_threads');

function serve() {
  const waiting = new Map();
  const respond = ([id, sum]) => {
    waiting.get(id).end(String(sum));
    waiting.delete(id);
  };
  const workers = Array.from({ length: Number(process.env.POOL) }, () => new Worker(__filename).on('message', respond));
  let count = 0;
  require('http').createServer((request, response) => {
    waiting.set(++count, response);
    workers[count % workers.length].postMessage(count);
  }).listen(process.env.PORT, '127.0.0.1');
}

if (isMainThread) serve();
else {
  parentPort.on('message', (id) => {
    let sum = 0;
    for (let turn = 0; turn < 400_000; turn++) sum = (sum * 31 + turn) | 0;
    parentPort.postMessage([id, sum]);
  });
}
