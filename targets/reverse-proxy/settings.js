'use strict';

// The environment as checked settings. An invalid value prevents the start, with the variable, the value and the limit in
// the message. It must not open anything.
//
//   PORT, HOST           where it listens                                            3000, 127.0.0.1
//   PREFIX               the path whose requests are forwarded, without it           /api
//   ORIGIN               where to, http://HOST:PORT                                  required
//   CONNECTIONS          to the origin, at most: further requests wait for one       256
//   IDLE_TIMEOUT_MS      until one is closed that no request needs                   60000
//   CONNECT_TIMEOUT_MS   until the origin accepts a connection                       5000
//   RESPONSE_TIMEOUT_MS  without a byte from the origin                              60000
//   CLIENT_TIMEOUT_MS    without a byte on a client's connection                     75000
//   HEAD_BYTES           of a request or a response, without its body                16384

class SettingError extends Error {}

function readSettings(env) {
  return {
    port: readNumber(env, 'PORT', 3000, 0, 65_535),
    host: (env.HOST ?? '127.0.0.1').replace(/^\[(.*)\]$/, '$1'),
    prefix: readPrefix(env.PREFIX ?? '/api'),
    origin: readOrigin(env.ORIGIN),
    connections: readNumber(env, 'CONNECTIONS', 256, 1, 65_535),
    idleTimeoutMs: readNumber(env, 'IDLE_TIMEOUT_MS', 60_000, 1, 3_600_000),
    connectTimeoutMs: readNumber(env, 'CONNECT_TIMEOUT_MS', 5000, 1, 3_600_000),
    responseTimeoutMs: readNumber(env, 'RESPONSE_TIMEOUT_MS', 60_000, 1, 3_600_000),
    clientTimeoutMs: readNumber(env, 'CLIENT_TIMEOUT_MS', 75_000, 1, 3_600_000),
    headBytes: readNumber(env, 'HEAD_BYTES', 16_384, 256, 1_048_576),
  };
}

function readNumber(env, name, preset, min, max) {
  const text = env[name] ?? String(preset);
  const value = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
  if (!(value >= min && value <= max)) throw new SettingError(`${name}: ${text} is not a number from ${min} to ${max}`);
  return value;
}

// Without a path: so no `..` in a request can reach more than the origin offers to everyone.
function readOrigin(text) {
  const match = /^http:\/\/(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(?::(\d{1,5}))?\/?$/.exec(text ?? '');
  if (match === null) throw new SettingError(`ORIGIN: ${text ?? 'missing'}, want http://HOST:PORT and no path`);
  return match[0];
}

function readPrefix(text) {
  if (!/^(\/[A-Za-z0-9._~-]+)*\/?$/.test(text)) throw new SettingError(`PREFIX: ${text} is not a path such as /api`);
  return text.replace(/\/$/, '');
}

module.exports = { SettingError, readSettings };
