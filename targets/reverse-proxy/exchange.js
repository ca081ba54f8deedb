'use strict';

// One request to the origin and its response, both passed on while they come. It holds no more of either than one read
// and what two sockets hold: where one side does not take what the other sends, the other is not read.
// It must not read the client's connection itself, nor decide what follows on it.

const { BrokenBody, UntilClose, requestBody, responseBody } = require('./body');
const { Refusal, readResponse } = require('./head');

const HEAD_END = '\r\n\r\n';

// Up to here head and body are put into one text and written at once; copying more than that costs more than a second
// piece.
const ONE_WRITE_BYTES = 16_384;

class Exchange {
  constructor(client, pool, request, target) {
    this.client = client;
    this.pool = pool;
    this.request = request;
    this.target = target;
    this.requestBody = requestBody(request);
    this.response = null;
    this.responseBody = null;
    this.partialHead = '';
    this.heard = false; // a byte of the origin's, on the connection now in use
    this.keepAlive = request.keepAlive;
    this.upstream = null;
  }

  /**
   * Bytes of the client's; gives how far they belong to this request. The first of them, which may be none, begin the
   * exchange. Throws a `BrokenBody`.
   */
  clientSent(bytes, start) {
    const end = this.requestBody.take(bytes, start, bytes.length);
    let head = '';
    if (this.upstream === null) {
      this.upstream = this.pool.take(this);
      head = this.headToOrigin();
    }
    const flows = send(this.upstream, head, bytes, start, end);
    if (!flows && !this.requestBody.done) this.client.pause();
    return end;
  }

  headToOrigin() {
    return this.request.toOrigin(this.target, this.client.peer);
  }

  clientDrained() {
    this.upstream.resume();
  }

  /** The client is gone, or what it sends makes no sense any more: nobody waits for the rest. */
  abandon() {
    this.upstream?.drop();
  }

  originDrained() {
    if (!this.requestBody.done) this.client.resume();
  }

  originSent(bytes, length) {
    this.heard = true;
    try {
      this.passOn(bytes, length);
    } catch (error) {
      if (!(error instanceof Refusal || error instanceof BrokenBody)) throw error;
      // Whatever is wrong with a response, the client cannot be told more than that it is.
      this.upstream.drop();
      this.fail(502);
    }
  }

  passOn(bytes, length) {
    let at = 0;
    let head = '';
    while (this.response === null) {
      const text = this.partialHead + bytes.toString('latin1', at, Math.min(length, at + this.pool.settings.headBytes));
      const end = text.indexOf(HEAD_END);
      if (end < 0) return this.keepPartialHead(text);
      at += end + HEAD_END.length - this.partialHead.length;
      this.partialHead = '';
      head = this.takeHead(readResponse(text, end));
      if (this.response === null && at === length) return undefined;
    }
    const end = this.responseBody.take(bytes, at, length);
    const flows = send(this.client, head, bytes, at, end);
    if (this.responseBody.done) this.finish(end < length);
    else if (!flows) this.upstream.pause();
    return undefined;
  }

  keepPartialHead(text) {
    if (text.length >= this.pool.settings.headBytes) throw new Refusal(502, 'head too long');
    this.partialHead = text;
  }

  // Gives what goes to the client before the body; interim responses (1xx) go at once, and are not yet the response.
  takeHead(response) {
    if (response.status === 101) throw new Refusal(502, 'protocol switched unasked');
    if (response.status < 200) {
      if (this.request.http11) this.client.write(response.toClient(''));
      return '';
    }
    if (response.chunked && !this.request.http11) throw new Refusal(502, 'chunks for a client that knows none');
    this.response = response;
    this.responseBody = responseBody(response, this.request.method);
    // While the request is not whole its connection cannot be used again, unless the client finishes it for nothing.
    if (!this.requestBody.done || this.responseBody instanceof UntilClose) this.keepAlive = false;
    if (!this.keepAlive) return response.toClient('close');
    return response.toClient(this.request.http11 ? '' : 'keep-alive');
  }

  // `surplus`: the origin has sent more than the response; what that is nobody knows.
  finish(surplus) {
    const { upstream } = this;
    if (this.response.keepAlive && this.requestBody.done && !surplus) this.pool.give(upstream);
    else upstream.drop();
    this.client.exchanged(this.keepAlive);
  }

  /** Whether it is the origin's turn: to answer, or to take more of the request. */
  get waitsForOrigin() {
    return this.requestBody.done || this.upstream.socket.writableNeedDrain;
  }

  originEnded() {
    if (!(this.responseBody instanceof UntilClose)) return; // 'close' follows, and finds the response cut off
    this.responseBody.done = true;
    this.finish(true);
  }

  /**
   * The connection is gone before the response was whole. One that was kept may have been closed by the origin just
   * when we took it: then, if not a byte came back, a request that may be sent twice is, once, over a new connection.
   */
  originLost(status) {
    if (this.upstream.reused && !this.heard && this.request.replayable && status === 502) {
      this.upstream = this.pool.open(this);
      this.upstream.write(this.headToOrigin());
    } else {
      this.fail(status);
    }
  }

  fail(status) {
    if (this.response === null) this.client.exchangeFailed(status, this.requestBody.done);
    else this.client.cut();
  }
}

// Gives false where the receiver has more than it takes. Bytes are copied: their memory is read into again.
function send(receiver, head, bytes, start, end) {
  if (end - start <= ONE_WRITE_BYTES) {
    const text = head + bytes.toString('latin1', start, end);
    return text === '' || receiver.write(text);
  }
  if (head !== '') receiver.write(head);
  return receiver.write(Buffer.from(bytes.subarray(start, end)));
}

module.exports = { Exchange };
