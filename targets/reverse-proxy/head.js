'use strict';

// The heads of requests and responses (RFC 9112): what was said, and what is to be said to the other side. Fields are
// passed on as they came, byte for byte and in their order; only those that belong to one connection are taken out.
// Pure: text goes in, text comes out. Text is latin1, so that each character is one byte.
//
// It must not guess. Whatever another reader could understand in another way is refused, for in that gap a second
// request can be hidden (request smuggling).

const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
const REQUEST_LINE = new RegExp(`(${TOKEN}) ([\\x21-\\x7e\\x80-\\xff]+) HTTP/1\\.([01])\\r\\n`, 'y');
const STATUS_LINE = /HTTP\/1\.([01]) ([1-9][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?\r\n/y;

// One quantifier for blanks and value together: two could match the same blanks in many ways, slowly.
const FIELD = new RegExp(`${TOKEN}:[\\t\\x20-\\x7e\\x80-\\xff]*\\r\\n`, 'y');

const LENGTH = /^[0-9]{1,15}$/; // below 2^53
const ABSOLUTE_TARGET = /^http:\/\/([^/?#@]+)([^#]*)$/i;
const HOST = /^[A-Za-z0-9\-._~%!$&'()*+,;=:[\]]*$/;

// Methods that may be sent again after a connection broke (RFC 9110, 9.2.2).
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);

// Fields of one connection, which end here (RFC 9110, 7.6.1), and of a request those that we say ourselves.
const PER_CONNECTION = ['connection', 'keep-alive', 'proxy-connection', 'te', 'transfer-encoding', 'upgrade'];
const OURS = ['host', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'];
const KNOWN_IN_RESPONSE = new Set([...PER_CONNECTION, 'content-length']);
const KNOWN_IN_REQUEST = new Set([...KNOWN_IN_RESPONSE, ...OURS]);

// Connection must not name these away: without them the other side would see another message than we did.
const NEVER_NAMED_AWAY = new Set(['content-length', 'transfer-encoding', 'host', 'close', 'keep-alive', 'upgrade']);

/** What is wrong with a message, and the status that says so. */
class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** What a request and a response have in common. */
class Head {
  constructor(http11) {
    this.http11 = http11;
    this.fields = ''; // those that are passed on, each with its line end
    this.length = -1; // of the body as Content-Length says it; -1: it says nothing
    this.chunked = false;
    this.keepAlive = http11;
    this.connection = ''; // the field's values, in small letters
    this.options = []; // of Connection
  }

  /** Takes from a field what counts in both directions. */
  note(name, value) {
    switch (name) {
      case 'content-length':
        if (this.length >= 0 || !LENGTH.test(value)) throw new Refusal(400, `Content-Length: ${value}`);
        this.length = Number(value);
        break;
      case 'transfer-encoding':
        if (this.chunked || !this.http11) throw new Refusal(400, `Transfer-Encoding: ${value}`);
        if (value.toLowerCase() !== 'chunked') throw new Refusal(501, `Transfer-Encoding: ${value}`);
        this.chunked = true;
        break;
      case 'connection':
        this.connection += `,${value.toLowerCase()}`;
        break;
      default:
    }
  }

  /** All fields are read: now Connection counts, and what contradicts itself is refused. */
  complete() {
    if (this.chunked && this.length >= 0) throw new Refusal(400, 'both Content-Length and Transfer-Encoding');
    if (this.connection === '') return;
    if (this.connection === ',keep-alive') {
      this.keepAlive = true; // which Node.js says in each response
      return;
    }
    this.options = this.connection.split(',').map(trimmed);
    if (this.options.includes('close')) this.keepAlive = false;
    else if (this.options.includes('keep-alive')) this.keepAlive = true;
    const named = this.options.filter((option) => option !== '' && !NEVER_NAMED_AWAY.has(option));
    if (named.length > 0) this.fields = without(this.fields, new Set(named));
  }
}

class RequestHead extends Head {
  constructor(method, target, http11) {
    super(http11);
    this.method = method;
    this.target = target;
    this.host = null;
    this.forwardedFor = '';
    this.upgrade = false;
  }

  note(name, value) {
    switch (name) {
      case 'host':
        if (this.host !== null || !HOST.test(value)) throw new Refusal(400, `Host: ${value}`);
        this.host = value;
        break;
      case 'x-forwarded-for':
        this.forwardedFor += `${value}, `;
        break;
      case 'upgrade':
        this.upgrade = true;
        break;
      default:
        super.note(name, value);
    }
  }

  complete() {
    super.complete();
    const absolute = ABSOLUTE_TARGET.exec(this.target);
    if (absolute !== null) {
      // The target's own host counts, not that of the field (RFC 9112, 3.2.2).
      if (!HOST.test(absolute[1])) throw new Refusal(400, `target ${this.target}`);
      this.host = absolute[1];
      this.target = absolute[2].startsWith('/') ? absolute[2] : `/${absolute[2]}`;
    }
    if (this.host === null) {
      if (this.http11) throw new Refusal(400, 'no Host');
      this.host = '';
    }
    if (this.method === 'CONNECT') throw new Refusal(405, 'CONNECT');
    if (this.upgrade && this.options.includes('upgrade')) throw new Refusal(501, 'Upgrade');
  }

  get hasBody() {
    return this.chunked || this.length > 0;
  }

  /** Whether it may be sent again: asking twice does the same as asking once, and nothing of it is gone. */
  get replayable() {
    return !this.hasBody && IDEMPOTENT.has(this.method);
  }

  /** As the origin is to get it: for `target`, from a client at `peer`. */
  toOrigin(target, peer) {
    const version = this.http11 ? '1' : '0';
    const connection = this.http11 ? '' : 'Connection: keep-alive\r\n';
    const framing = this.chunked ? 'Transfer-Encoding: chunked\r\n' : '';
    return (
      `${this.method} ${target} HTTP/1.${version}\r\nHost: ${this.host}\r\n${this.fields}${framing}${connection}` +
      `X-Forwarded-For: ${this.forwardedFor}${peer}\r\nX-Forwarded-Host: ${this.host}\r\nX-Forwarded-Proto: http\r\n\r\n`
    );
  }
}

class ResponseHead extends Head {
  constructor(line, status, http11) {
    super(http11);
    this.line = line;
    this.status = status;
  }

  /** As the client is to get it. `said` is what Connection is to say, if anything. */
  toClient(said) {
    const framing = this.chunked ? 'Transfer-Encoding: chunked\r\n' : '';
    const connection = said === '' ? '' : `Connection: ${said}\r\n`;
    return `HTTP/1.1${this.line}${this.fields}${framing}${connection}\r\n`;
  }
}

/** Reads the request head that begins `text`; `end` is where its blank line begins. Throws a `Refusal`. */
function readRequest(text, end) {
  REQUEST_LINE.lastIndex = 0;
  const line = REQUEST_LINE.exec(text);
  if (line === null) throw new Refusal(400, 'request line');
  const head = new RequestHead(line[1], line[2], line[3] === '1');
  readFields(head, text, REQUEST_LINE.lastIndex, end, KNOWN_IN_REQUEST);
  return head;
}

/** Reads the response head that begins `text`; `end` is where its blank line begins. Throws a `Refusal`. */
function readResponse(text, end) {
  STATUS_LINE.lastIndex = 0;
  const line = STATUS_LINE.exec(text);
  if (line === null) throw new Refusal(502, 'status line');
  const head = new ResponseHead(text.slice('HTTP/1.x'.length, STATUS_LINE.lastIndex), Number(line[2]), line[1] === '1');
  readFields(head, text, STATUS_LINE.lastIndex, end, KNOWN_IN_RESPONSE);
  return head;
}

// Lines that are passed on are cut out of the text in as few pieces as there are, not put together line by line.
function readFields(head, text, start, end, known) {
  const stop = end + 2; // the last line's own end
  let at = start;
  let keptFrom = start;
  while (at < stop) {
    FIELD.lastIndex = at;
    if (!FIELD.test(text)) throw new Refusal(400, 'header field');
    const next = FIELD.lastIndex;
    const colon = text.indexOf(':', at);
    const name = text.slice(at, colon).toLowerCase();
    if (known.has(name)) {
      head.note(name, trimmed(text.slice(colon + 1, next - 2)));
      if (name !== 'content-length') {
        head.fields += text.slice(keptFrom, at);
        keptFrom = next;
      }
    }
    at = next;
  }
  head.fields += text.slice(keptFrom, stop);
  head.complete();
}

// String's own trim() takes more than the blanks that HTTP knows, such as the byte 0xa0.
function trimmed(value) {
  let start = 0;
  let end = value.length;
  while (start < end && isBlank(value.charCodeAt(start))) start += 1;
  while (end > start && isBlank(value.charCodeAt(end - 1))) end -= 1;
  return value.slice(start, end);
}

function isBlank(code) {
  return code === 0x20 || code === 0x09;
}

function without(fields, names) {
  const lines = fields.split('\r\n').slice(0, -1);
  const kept = lines.filter((line) => !names.has(line.slice(0, line.indexOf(':')).toLowerCase()));
  return kept.map((line) => `${line}\r\n`).join('');
}

module.exports = { Refusal, readRequest, readResponse };
