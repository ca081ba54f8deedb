'use strict';

// A lab that accepts agents and never arms one, for agent-tax.toml. It also listens on a port, so that Proofload sees that it is ready.

const fs = require('node:fs');
const net = require('node:net');

const port = Number(process.env.PORT);
const address = `/tmp/proofload-agent-${port}.sock`;

fs.rmSync(address, { force: true });
const servers = [
  net.createServer((socket) => {
    socket.on('error', () => {}); // a service that was killed
    socket.on('data', (text) => process.stdout.write(text));
  }).listen(address, () => {
    servers.push(net.createServer((socket) => socket.destroy()).listen(port, '127.0.0.1'));
  }),
];

process.once('SIGTERM', () => {
  fs.rmSync(address, { force: true });
  process.exit(0);
});
