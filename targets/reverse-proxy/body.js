'use strict';

// Where a body ends (RFC 9112, 6 and 7). Each kind has `done`, and `take(bytes, start, end)`, which says how far the
// bytes from `start` to `end` belong to the body. Bodies are passed on as they came, chunks and their sizes included, so
// it must never change a byte, and must refuse whatever the other side could read in another way.

const CHUNK_SIZE_DIGITS_MAX = 13; // below 2^53
const CHUNK_LINE_MAX = 4096;
const TRAILERS_MAX = 16_384;

const CR = 0x0d;
const LF = 0x0a;
const SEMICOLON = 0x3b;

/** A body that breaks the rules; what follows it cannot be told from it. */
class BrokenBody extends Error {}

class NoBody {
  done = true;

  take(bytes, start) {
    return start;
  }
}

const NO_BODY = new NoBody();

class FixedBody {
  constructor(length) {
    this.left = length;
    this.done = length === 0;
  }

  take(bytes, start, end) {
    const taken = Math.min(this.left, end - start);
    this.left -= taken;
    this.done = this.left === 0;
    return start + taken;
  }
}

/** It ends where its connection does. */
class UntilClose {
  done = false;

  take(bytes, start, end) {
    return end;
  }
}

const [SIZE, EXTENSION, SIZE_LF, DATA, DATA_CR, DATA_LF, TRAILER, TRAILER_LINE, TRAILER_LF, END_LF] = Array(10).keys();

/** Chunks, up to the blank line after the last of them and its trailers. */
class ChunkedBody {
  done = false;
  state = SIZE;
  size = 0;
  digits = 0;
  seen = 0; // bytes of this chunk's line, or of all trailers

  take(bytes, start, end) {
    let at = start;
    while (at < end && !this.done) {
      if (this.state === DATA) at = this.takeData(at, end);
      else this.step(bytes[at++]);
    }
    return at;
  }

  takeData(at, end) {
    const taken = Math.min(this.size, end - at);
    this.size -= taken;
    if (this.size === 0) this.state = DATA_CR;
    return at + taken;
  }

  step(byte) {
    switch (this.state) {
      case SIZE:
        return this.stepSize(byte);
      case EXTENSION:
        return this.stepLine(byte, SIZE_LF, CHUNK_LINE_MAX);
      case SIZE_LF:
        this.seen = 0;
        return this.expect(byte, LF, this.size === 0 ? TRAILER : DATA);
      case DATA_CR:
        return this.expect(byte, CR, DATA_LF);
      case DATA_LF:
        this.digits = 0;
        return this.expect(byte, LF, SIZE);
      case TRAILER:
        this.state = byte === CR ? END_LF : TRAILER_LINE;
        return byte === CR ? undefined : this.stepLine(byte, TRAILER_LF, TRAILERS_MAX);
      case TRAILER_LINE:
        return this.stepLine(byte, TRAILER_LF, TRAILERS_MAX);
      case TRAILER_LF:
        return this.expect(byte, LF, TRAILER);
      default: // END_LF
        this.done = true;
        return this.expect(byte, LF, END_LF);
    }
  }

  stepSize(byte) {
    const digit = hexDigit(byte);
    if (digit >= 0) {
      this.digits += 1;
      if (this.digits > CHUNK_SIZE_DIGITS_MAX) throw new BrokenBody('chunk size too long');
      this.size = this.size * 16 + digit;
      return;
    }
    if (this.digits === 0) throw new BrokenBody('chunk without a size');
    if (byte === CR) this.state = SIZE_LF;
    else if (byte === SEMICOLON) this.state = EXTENSION;
    else throw new BrokenBody('chunk size');
  }

  stepLine(byte, after, limit) {
    this.seen += 1;
    if (this.seen > limit) throw new BrokenBody('line too long');
    if (byte === CR) this.state = after;
    else if ((byte < 0x20 && byte !== 0x09) || byte === 0x7f) throw new BrokenBody('control character in a line');
  }

  expect(byte, expected, next) {
    if (byte !== expected) throw new BrokenBody('line end');
    this.state = next;
  }
}

function hexDigit(byte) {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

/** The body that a request has. */
function requestBody(head) {
  if (head.chunked) return new ChunkedBody();
  return head.length > 0 ? new FixedBody(head.length) : NO_BODY;
}

/** The body that a response to `method` has. */
function responseBody(head, method) {
  if (method === 'HEAD' || head.status === 204 || head.status === 304) return NO_BODY;
  if (head.chunked) return new ChunkedBody();
  return head.length >= 0 ? new FixedBody(head.length) : new UntilClose();
}

module.exports = { BrokenBody, UntilClose, requestBody, responseBody };
