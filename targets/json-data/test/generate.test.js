'use strict';

const assert = require('node:assert/strict');
const { createHash } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { generate, scratchFolder } = require('../../tests/json-data');

const MEGABYTE = 1_000_000;
const RECORD_BYTES_MAX = 1000;

test('the same bytes on each machine: whole JSON arrays of the size asked for', () => {
  const folder = scratchFolder();
  assert.equal(generate(folder, '--bytes', '1MB').status, 0);
  const [small, large] = ['small.json', 'large.json'].map((name) => fs.readFileSync(path.join(folder, name)));
  const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
  assert.equal(sha256(small), '1a8c8057450523671ec2f579290a425a74d6c6069a0f9e91c73de45680b4508d');
  assert.equal(sha256(large), '810ed9b9d0be67bbec933f7770c7f4c0c282fc277d0def5f8cd23f1c1c4568f4');
  assert.ok(large.length <= MEGABYTE && large.length > MEGABYTE - RECORD_BYTES_MAX, `${large.length} bytes`);
  const places = JSON.parse(large);
  assert.equal(new Set(places.map((place) => place.zipcode)).size, places.length, 'a zip code comes once a year');
  assert.equal(JSON.parse(small).at(-1).id, JSON.parse(small).length);
});

test('less than a record is an empty array', () => {
  const folder = scratchFolder();
  assert.equal(generate(folder, '--bytes', '100').status, 0);
  assert.equal(fs.readFileSync(path.join(folder, 'large.json'), 'utf8'), '[]');
});

test('a full disk is told, and no half file is left that could be taken for a whole one', () => {
  const folder = scratchFolder();
  fs.symlinkSync('/dev/full', path.join(folder, 'large.json.part'));
  const { status, stderr } = generate(folder, '--bytes', '3MB');
  assert.equal(status, 1);
  assert.match(stderr, /large\.json could not be written: no space is left on its disk after \d+ bytes/);
  assert.deepEqual(fs.readdirSync(folder), ['small.json']);
});

test('what is not understood is told before anything is written', () => {
  for (const words of [['--bytes', '2GiB'], ['--bytes', '1'], ['--size', '1MB'], ['another-folder']]) {
    const folder = scratchFolder();
    const { status, stderr } = generate(folder, ...words);
    assert.equal(status, 2, words.join(' '));
    assert.match(stderr, /usage: node generate\.js FOLDER/);
    assert.deepEqual(fs.readdirSync(folder), []);
  }
});
