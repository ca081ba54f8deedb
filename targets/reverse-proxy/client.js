'use strict';

// One client's connection: finds the requests in what comes, has one exchange at a time, and answers itself what does
// not go to the origin. It must not pass on anything of a request that it could not read whole and without doubt.

const { STATUS_CODES } = require('node:http');
const { BrokenBody } = require('./body');
const { Exchange } = require('./exchange');
const { Refusal, readRequest } = require('./head');

const HEAD_END = '\r\n\r\n';
const LINGER_MS = 5000;
const NOTHING = Buffer.alloc(0);

class Client {
  constructor(proxy, socket) {
    this.proxy = proxy;
    this.socket = socket;
    this.peer = (socket.remoteAddress ?? 'unknown').replace(/^::ffff:/, '');
    this.pending = NOTHING; // what came and is not yet looked at, or not yet a whole head
    this.exchange = null;
    this.paused = false;
    this.lingering = false;
    this.activeMs = proxy.clock.nowMs;
    socket.on('data', (bytes) => this.onData(bytes));
    socket.on('drain', () => this.onDrain());
    socket.on('end', () => this.onEnd());
    socket.on('error', () => {}); // 'close' follows
    socket.on('close', () => this.onClose());
  }

  onData(bytes) {
    if (this.lingering) return;
    // A head has one limit for all of it: each of its bytes must not bring another.
    if (this.exchange !== null || this.pending.length === 0) this.activeMs = this.proxy.clock.nowMs;
    if (this.exchange !== null) this.feed(bytes, 0);
    else {
      this.pending = this.pending.length === 0 ? bytes : Buffer.concat([this.pending, bytes]);
      this.advance();
    }
  }

  // What follows the exchange's request waits for its turn.
  feed(bytes, start) {
    let end;
    try {
      end = this.exchange.clientSent(bytes, start);
    } catch (error) {
      if (!(error instanceof BrokenBody)) throw error;
      this.exchange.abandon();
      if (this.exchange.response === null) this.exchangeFailed(400, false);
      else this.cut();
      return;
    }
    if (end === bytes.length) return;
    const rest = bytes.subarray(end);
    this.pending = this.pending.length === 0 ? rest : Buffer.concat([this.pending, rest]);
    if (this.pending.length > this.proxy.settings.headBytes) this.pause();
  }

  // Takes up requests until one is under way, or none is whole, or the client must first take what it has asked for.
  advance() {
    let taken = true;
    while (taken && this.exchange === null && this.pending.length > 0 && !this.socket.writableNeedDrain) {
      try {
        taken = this.takeRequest();
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        this.refuse(error.status);
      }
    }
    const wanted = this.exchange === null || this.exchange.requestBody.done;
    if (wanted && this.pending.length <= this.proxy.settings.headBytes) this.resume();
  }

  takeRequest() {
    const bytes = this.pending;
    const start = blankStart(bytes);
    const limit = this.proxy.settings.headBytes;
    const text = bytes.toString('latin1', start, Math.min(bytes.length, start + limit));
    const end = text.indexOf(HEAD_END);
    if (end < 0) {
      if (text.length >= limit) throw new Refusal(431, `head above ${limit} bytes`);
      return false;
    }
    this.pending = NOTHING;
    const request = readRequest(text, end);
    const bodyStart = start + end + HEAD_END.length;
    const target = originTarget(request.target, this.proxy.settings.prefix);
    if (target === null) return this.answerHere(request, bytes, bodyStart);
    this.exchange = new Exchange(this, this.proxy.pool, request, target);
    this.feed(bytes, bodyStart);
    return true;
  }

  answerHere(request, bytes, bodyStart) {
    const healthy = request.target === '/healthz' && (request.method === 'GET' || request.method === 'HEAD');
    const keepAlive = request.keepAlive && !request.hasBody;
    this.answer(healthy ? 200 : 404, request, keepAlive);
    if (keepAlive) this.pending = bytes.subarray(bodyStart);
    else this.close();
    return true;
  }

  answer(status, request, keepAlive) {
    const body = `${status} ${STATUS_CODES[status]}\n`;
    const connection = keepAlive ? 'keep-alive' : 'close';
    const head =
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nDate: ${new Date().toUTCString()}\r\n` +
      `Content-Type: text/plain\r\nContent-Length: ${body.length}\r\nConnection: ${connection}\r\n\r\n`;
    this.write(request?.method === 'HEAD' ? head : head + body);
  }

  // After a message that could not be read nothing on the connection can be.
  refuse(status) {
    this.answer(status, null, false);
    this.close();
  }

  /** The exchange is over, and its response written. */
  exchanged(keepAlive) {
    this.exchange = null;
    if (!keepAlive || this.proxy.stopping) this.close();
    else this.advance();
  }

  /** The exchange has failed before anything of its response was written. */
  exchangeFailed(status, requestDone) {
    const { request } = this.exchange;
    const keepAlive = request.keepAlive && requestDone && !this.proxy.stopping;
    this.answer(status, request, keepAlive);
    this.exchanged(keepAlive);
  }

  /** A response cannot be finished: that must not look as if it were. A reset cannot be mistaken for its end. */
  cut() {
    this.exchange = null;
    this.socket.resetAndDestroy();
  }

  // What still comes is read, and thrown away, until the client closes too or has had its time: closing with bytes unread
  // would reset the connection, and could take the response from the client.
  close() {
    this.lingering = true;
    this.pending = NOTHING;
    this.activeMs = this.proxy.clock.nowMs;
    this.resume();
    this.socket.end();
  }

  write(data) {
    const flows = typeof data === 'string' ? this.socket.write(data, 'latin1') : this.socket.write(data);
    if (flows) this.activeMs = this.proxy.clock.nowMs;
    return flows;
  }

  pause() {
    this.paused = true;
    this.socket.pause();
  }

  resume() {
    if (!this.paused) return;
    this.paused = false;
    this.socket.resume();
  }

  onDrain() {
    this.activeMs = this.proxy.clock.nowMs;
    if (this.exchange !== null) this.exchange.clientDrained();
    else this.advance();
  }

  // Who stops sending while a response is due has gone, as nginx sees it.
  onEnd() {
    if (this.exchange !== null) this.socket.destroy();
  }

  onClose() {
    this.proxy.clients.delete(this);
    const { exchange } = this;
    this.exchange = null;
    exchange?.abandon();
  }

  check(nowMs) {
    const silentMs = nowMs - this.activeMs;
    const { clientTimeoutMs } = this.proxy.settings;
    if (this.lingering) {
      if (silentMs > Math.min(LINGER_MS, clientTimeoutMs)) this.socket.destroy();
    } else if (silentMs > clientTimeoutMs && this.waitsForClient()) {
      this.socket.destroy();
    }
  }

  // Whether it is the client's turn: to ask, to send the rest of what it asks, or to take the response.
  waitsForClient() {
    if (this.exchange === null || this.socket.writableNeedDrain) return true;
    return !this.exchange.requestBody.done && !this.paused;
  }
}

// A blank line or two before a request is left over from the one before it (RFC 9112, 2.2).
function blankStart(bytes) {
  let start = 0;
  while (start + 1 < bytes.length && bytes[start] === 0x0d && bytes[start + 1] === 0x0a) start += 2;
  return start;
}

// The target without the prefix, every other byte as it was; null if it is not below the prefix.
function originTarget(target, prefix) {
  if (!target.startsWith(prefix)) return null;
  const rest = target.slice(prefix.length);
  if (rest === '' || rest.startsWith('?')) return `/${rest}`;
  return rest.startsWith('/') ? rest : null;
}

module.exports = { Client };
