'use strict';

// The data sets for the tests of json-data. The same program makes them as makes the real ones, in a folder that is removed
// with the test process. Only the large one is smaller.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const directory = path.join(__dirname, '../json-data');

/** An empty folder that is removed when this process ends. */
function scratchFolder() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'json-data-'));
  process.once('exit', () => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Runs generate.js; returns its exit code as `status` and its messages as `stderr`. */
function generate(...words) {
  return spawnSync(process.execPath, ['generate.js', ...words], { cwd: directory, encoding: 'utf8' });
}

/** A folder with both sets. */
function dataFolder() {
  const folder = scratchFolder();
  const { status, stderr } = generate(folder, '--bytes', '1MB');
  if (status !== 0) throw new Error(stderr);
  return folder;
}

module.exports = { dataFolder, directory, generate, scratchFolder };
