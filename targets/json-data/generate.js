'use strict';

// Makes the data sets: `node generate.js FOLDER [--bytes 2GB]` writes small.json and large.json, the same bytes on
// every machine. A file has its name only once it is whole: until then it ends in .part.

const fs = require('node:fs/promises');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { buildSpeakers } = require('./sets/speakers');
const { zipcodeRecords } = require('./sets/zipcodes');

const USAGE = 'usage: node generate.js FOLDER [--bytes 2GB]   (a number, or one with kB, MB or GB; at least 2)';
const UNITS = { '': 1, kB: 1e3, MB: 1e6, GB: 1e9 };
const BYTES_MIN = '[]'.length;
const PIECE_BYTES = 1 << 20; // long enough that calls cost little, and small beside the file
const EXIT_USAGE = 2;

async function main() {
  const { folder, bytes } = readArguments();
  await fs.mkdir(folder, { recursive: true });
  await writeWhole(path.join(folder, 'small.json'), [JSON.stringify(buildSpeakers())]);
  await writeWhole(path.join(folder, 'large.json'), pieces(arrayOf(zipcodeRecords(), bytes)));
}

function readArguments() {
  try {
    const options = { bytes: { type: 'string', default: '2GB' } };
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    if (positionals.length !== 1) throw new Error(`${positionals.length} folders are named`);
    return { folder: positionals[0], bytes: parseBytes(values.bytes) };
  } catch (error) {
    console.error(`generate: ${error.message}\n${USAGE}`);
    return process.exit(EXIT_USAGE);
  }
}

function parseBytes(text) {
  const [, digits, unit] = /^(\d+)(|kB|MB|GB)$/.exec(text) ?? [];
  const bytes = Number(digits) * UNITS[unit];
  if (!Number.isSafeInteger(bytes) || bytes < BYTES_MIN) throw new Error(`--bytes is ${text}`);
  return bytes;
}

/** The text of a JSON array with as many of `records`, which are ASCII, as fit into `bytes`. */
function* arrayOf(records, bytes) {
  let left = bytes - BYTES_MIN;
  let separator = '[';
  for (const record of records) {
    const text = JSON.stringify(record);
    const needed = text.length + (separator === '[' ? 0 : separator.length);
    if (needed > left) break;
    yield separator + text;
    left -= needed;
    separator = ',';
  }
  yield separator === '[' ? '[]' : ']';
}

/** The same text in pieces of about PIECE_BYTES. */
function* pieces(texts) {
  let piece = '';
  for (const text of texts) {
    piece += text;
    if (piece.length >= PIECE_BYTES) {
      yield piece;
      piece = '';
    }
  }
  yield piece;
}

// Each piece is written before the next one is made: a slow disk slows this down and fills no memory.
async function writeWhole(file, texts) {
  const part = `${file}.part`;
  let written = 0;
  try {
    const handle = await fs.open(part, 'w');
    try {
      for (const text of texts) {
        const bytes = Buffer.from(text);
        await handle.writeFile(bytes);
        written += bytes.length;
      }
    } finally {
      await handle.close();
    }
    await fs.rename(part, file);
  } catch (error) {
    await fs.rm(part, { force: true });
    throw new Error(`${file} could not be written: ${reason(error, written)}`);
  }
}

function reason(error, written) {
  if (error.code !== 'ENOSPC') return error.message;
  return `no space is left on its disk after ${written} bytes; free some, or ask for less with --bytes`;
}

main().catch((error) => {
  console.error(`generate: ${error.message}`);
  process.exitCode = 1;
});
