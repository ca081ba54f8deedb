'use strict';

// Connections to the origin, kept for the next request. As with nginx's `keepalive`, a limit holds for those that are
// idle, not for those in use: each request has a connection to itself, and one that finds none idle opens one.
// It must not know HTTP: an exchange gets the bytes and says when the connection is free again.

const net = require('node:net');

// All connections read into the same memory, one after the other: what an exchange does not pass on at once it copies.
const READ_BYTES = 65_536;
const inbox = Buffer.allocUnsafeSlow(READ_BYTES);

/** One connection to the origin. `exchange` is what uses it, null while it is idle. */
class Upstream {
  constructor(pool, exchange) {
    this.pool = pool;
    this.exchange = exchange;
    this.reused = false;
    this.activeMs = pool.clock.nowMs;
    this.paused = false;
    this.socket = net.connect({
      host: pool.settings.originHost,
      port: pool.settings.originPort,
      noDelay: true,
      onread: { buffer: inbox, callback: (length) => this.onBytes(length) },
    });
    this.socket.on('drain', () => this.onDrain());
    this.socket.on('end', () => this.exchange?.originEnded());
    this.socket.on('error', () => {}); // 'close' follows
    this.socket.on('close', () => this.onClose());
  }

  onBytes(length) {
    this.activeMs = this.pool.clock.nowMs;
    if (this.exchange === null) this.socket.destroy(); // nobody has asked
    else this.exchange.originSent(inbox, length);
    return true;
  }

  onDrain() {
    this.activeMs = this.pool.clock.nowMs;
    this.exchange?.originDrained();
  }

  onClose() {
    this.pool.forget(this);
    this.exchange?.originLost(502);
  }

  /** Gives false when enough waits to be sent already; `originDrained` tells when that is gone. */
  write(data) {
    this.activeMs = this.pool.clock.nowMs;
    return typeof data === 'string' ? this.socket.write(data, 'latin1') : this.socket.write(data);
  }

  pause() {
    this.paused = true;
    this.socket.pause();
  }

  resume() {
    if (!this.paused) return;
    this.paused = false;
    this.activeMs = this.pool.clock.nowMs;
    this.socket.resume();
  }

  /** Ends the connection; no exchange hears of it. */
  drop() {
    this.exchange = null;
    this.socket.destroy();
  }

  check(nowMs) {
    const { connectTimeoutMs, responseTimeoutMs } = this.pool.settings;
    const { connecting } = this.socket;
    const limitMs = connecting ? connectTimeoutMs : responseTimeoutMs;
    if (this.paused || nowMs - this.activeMs <= limitMs || !(connecting || this.exchange.waitsForOrigin)) return;
    const { exchange } = this;
    this.drop();
    exchange.originLost(504);
  }
}

class Pool {
  constructor(settings, clock) {
    this.settings = settings;
    this.clock = clock;
    this.idle = []; // the one used last is last, and taken first: so those not needed grow old
    this.all = new Set();
  }

  take(exchange) {
    let upstream = this.idle.pop();
    while (upstream !== undefined && !upstream.socket.writable) upstream = this.idle.pop(); // just being closed
    if (upstream === undefined) return this.open(exchange);
    upstream.exchange = exchange;
    upstream.reused = true;
    upstream.activeMs = this.clock.nowMs;
    return upstream;
  }

  open(exchange) {
    const upstream = new Upstream(this, exchange);
    this.all.add(upstream);
    return upstream;
  }

  give(upstream) {
    upstream.exchange = null;
    if (this.idle.length >= this.settings.idleConnections || !upstream.socket.writable) upstream.drop();
    else {
      upstream.activeMs = this.clock.nowMs;
      this.idle.push(upstream);
    }
  }

  forget(upstream) {
    this.all.delete(upstream);
    const at = this.idle.indexOf(upstream);
    if (at >= 0) this.idle.splice(at, 1);
  }

  /** Ends what has been idle, or silent, for too long. */
  check(nowMs) {
    const oldestMs = nowMs - this.settings.idleTimeoutMs;
    while (this.idle.length > 0 && this.idle[0].activeMs < oldestMs) this.idle.shift().drop();
    for (const upstream of this.all) if (upstream.exchange !== null) upstream.check(nowMs);
  }

  dropIdle() {
    for (const upstream of this.idle.splice(0)) upstream.drop();
  }
}

module.exports = { Pool };
