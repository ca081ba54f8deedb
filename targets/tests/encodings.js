'use strict';

// What the targets with the switch COMPRESSION promise, tested on the wire, because fetch decodes responses unseen. The
// content is for each target's own tests.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const http = require('node:http');
const { buffer } = require('node:stream/consumers');
const test = require('node:test');
const zlib = require('node:zlib');
const { serviceFor, startService } = require('./service');

const DECODERS = { gzip: zlib.gunzipSync, br: zlib.brotliDecompressSync };

/** Registers the tests of the switch for the target in `directory`, on the responses to `paths`. */
function testEncodings(directory, paths = ['/']) {
  for (const path of paths) {
    test(`COMPRESSION=off, the default, sends ${path} as it is to clients that accept more`, (t) => testOff(t, directory, path));
    test(`COMPRESSION=default and best encode ${path} for clients that accept it`, (t) => testOn(t, directory, path));
  }

  test('a COMPRESSION that does not exist ends the service, or it would be measured as another', async () => {
    await assert.rejects(startService(directory, { COMPRESSION: 'gzip' }), /ended without announcing/);
  });
}

async function testOff(t, directory, path) {
  for (const COMPRESSION of [undefined, 'off']) {
    const service = await serviceFor(t, directory, { COMPRESSION });
    const { headers, body } = await getRaw(service.origin + path, 'gzip, br');
    assert.equal(headers['content-encoding'], undefined);
    assert.equal(headers['content-length'], String(body.length));
  }
}

async function testOn(t, directory, path) {
  const bytes = { default: {}, best: {} };
  for (const COMPRESSION of Object.keys(bytes)) {
    const service = await serviceFor(t, directory, { COMPRESSION });
    const plain = await getRaw(service.origin + path);
    assert.equal(plain.headers['content-encoding'], undefined);
    for (const [coding, decode] of Object.entries(DECODERS)) {
      const { headers, body } = await getRaw(service.origin + path, coding);
      assert.equal(headers['content-encoding'], coding);
      assert.ok(decode(body).equals(plain.body), `${coding} contains what is sent without`);
      bytes[COMPRESSION][coding] = body.length;
    }
  }
  for (const coding of Object.keys(DECODERS)) {
    assert.ok(bytes.best[coding] < bytes.default[coding], `best is smaller in ${coding}: ${JSON.stringify(bytes)}`);
  }
}

// A GET whose response comes as it is on the wire: its `headers` and `body`.
async function getRaw(url, acceptEncoding) {
  const headers = acceptEncoding ? { 'accept-encoding': acceptEncoding } : {};
  const [response] = await once(http.get(url, { agent: false, headers }), 'response');
  assert.equal(response.statusCode, 200);
  return { headers: response.headers, body: await buffer(response) };
}

module.exports = { testEncodings };
