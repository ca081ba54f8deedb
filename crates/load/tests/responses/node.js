'use strict';

// What Node's own HTTP client makes of responses: reads one case a line on standard input, `METHOD BYTES` with the bytes
// in hexadecimal, lets its client ask a server on 127.0.0.1 that answers with exactly those bytes, and writes one line
// for each, in order, after one that tells the version of its parser. It must not judge: that is for whoever compares.
//
//   done STATUS LENGTH kept|closed     complete; whether the socket waits for another request
//   ended STATUS LENGTH                complete because the server then ended the connection
//   cut head | cut body STATUS LENGTH  incomplete when the server ended the connection
//   malformed head|body CODE           refused by the parser; too-large where a limit was the reason
//   upgraded STATUS                    handed to another protocol
//
// No outcome depends on time: what the client read is compared with what was sent, and the server ends the connection
// only when the client has read everything and wants more.

const { once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const net = require('node:net');

const HEAD_LIMIT_BYTES = 64 * 1024; // the engine's own limit, so that the two are alike
const TURNS = 8; // of the event loop, for events to follow what the parser has read
const STUCK_MS = 60_000;

async function main() {
  const cases = fs.readFileSync(0, 'latin1').trim().split('\n').map(parseCase);
  const stuck = setTimeout(() => fail(`no outcome within ${STUCK_MS} ms`), STUCK_MS);
  process.stdout.write(`${process.versions.llhttp}\n`);
  const { server, port, connections } = await serve(cases);
  for (const [index, { method, bytes }] of cases.entries()) {
    const agent = new http.Agent({ keepAlive: true });
    const seen = ask({ agent, port, method, path: `/${index}` });
    const outcome = await judge(seen, agent, bytes.length, () => connections[index].end());
    process.stdout.write(`${outcome}\n`);
    agent.destroy();
    connections[index]?.destroy();
  }
  server.close();
  clearTimeout(stuck);
}

function parseCase(line) {
  const [method, hex = ''] = line.split(' ');
  return { method, bytes: Buffer.from(hex, 'hex') };
}

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

/** A server that answers `/INDEX` with the bytes of that case and leaves the connection open. */
async function serve(cases) {
  const connections = [];
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    let request = '';
    socket.on('error', () => {}); // a client that refuses an answer resets the connection
    socket.on('data', (data) => {
      request += data.toString('latin1');
      if (!request.endsWith('\r\n\r\n')) return;
      const index = Number(request.split(' ')[1].slice(1));
      connections[index] = socket;
      socket.write(cases[index].bytes);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: server.address().port, connections };
}

/** Sends one request; what comes of it is written into the object that is returned. */
function ask({ agent, port, method, path }) {
  const seen = { status: 0, length: 0, head: false, complete: false, closed: false, upgraded: false, error: null, socket: null };
  const place = { host: '127.0.0.1', port, path };
  const request = http.request({ ...place, method, agent, maxHeaderSize: HEAD_LIMIT_BYTES });
  request.on('socket', (socket) => { seen.socket = socket; });
  request.on('response', (response) => {
    seen.head = true;
    seen.status = response.statusCode;
    response.on('data', (data) => { seen.length += data.length; });
    response.on('end', () => { seen.complete = response.complete; });
    response.on('error', () => {}); // the request has the parser's error; that the end was missing shows by itself
  });
  request.on('upgrade', (response, socket) => {
    seen.upgraded = true;
    seen.status = response.statusCode;
    socket.destroy();
  });
  request.on('error', (error) => { seen.error ??= error; });
  request.on('close', () => { seen.closed = true; });
  request.end();
  return seen;
}

/** Waits for the outcome; ends the connection once all is read and the response still incomplete. */
async function judge(seen, agent, bytesSent, endConnection) {
  const refused = () => seen.error?.code?.startsWith('HPE_');
  await until(() => seen.error || seen.closed || seen.upgraded || seen.socket?.bytesRead >= bytesSent);
  if (seen.upgraded) return `upgraded ${seen.status}`;
  if (!refused() && seen.complete) {
    const kept = Object.values(agent.freeSockets).flat().includes(seen.socket);
    return `done ${seen.status} ${seen.length} ${kept ? 'kept' : 'closed'}`;
  }
  if (!seen.error && !seen.closed) {
    endConnection();
    await until(() => seen.closed);
  }
  const phase = seen.head ? 'body' : 'head';
  if (refused()) {
    const tooLarge = seen.error.code.endsWith('OVERFLOW');
    return `${tooLarge ? 'too-large' : 'malformed'} ${phase} ${seen.error.code}`;
  }
  if (seen.complete) return `ended ${seen.status} ${seen.length}`;
  return seen.head ? `cut body ${seen.status} ${seen.length}` : 'cut head';
}

async function until(condition) {
  while (!condition()) await turn();
  for (let count = 0; count < TURNS; count += 1) await turn();
}

function turn() {
  return new Promise((resolve) => { setImmediate(resolve); });
}

main().catch((error) => fail(error.stack));
