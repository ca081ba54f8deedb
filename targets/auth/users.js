'use strict';

// The users of one process, in memory, each with a salt and the PBKDF2 hash of the password. There are two ways to check a password,
// with the same work: one in the event loop, one in a thread of libuv's pool. It must not know HTTP.

const { pbkdf2, pbkdf2Sync, randomBytes, timingSafeEqual } = require('node:crypto');
const { promisify } = require('node:util');

// The parameters of a public study of these two ways, so that results can be compared with it. HASH_ITERATIONS makes hashes cheaper.
const ITERATIONS = Number(process.env.HASH_ITERATIONS ?? 10_000);
const HASH_BYTES = 512;
const DIGEST = 'sha512';
const SALT_BYTES = 128;

const pbkdf2Async = promisify(pbkdf2);
const users = new Map();

// Used for users that do not exist: a request for one takes as long as one with a wrong password, and so reveals nothing.
const NOBODY = { salt: randomBytes(SALT_BYTES), hash: randomBytes(HASH_BYTES) };

/** Stores a user; false if the name is taken. It blocks the event loop, as in the study, which does not measure it. */
function addUser(username, password) {
  if (users.has(username)) return false;
  const salt = randomBytes(SALT_BYTES);
  users.set(username, { salt, hash: pbkdf2Sync(password, salt, ITERATIONS, HASH_BYTES, DIGEST) });
  return true;
}

/** Whether the password is this user's. Blocks the event loop. */
function checkSync(username, password) {
  const { salt, hash } = users.get(username) ?? NOBODY;
  return timingSafeEqual(hash, pbkdf2Sync(password, salt, ITERATIONS, HASH_BYTES, DIGEST));
}

/** The same as a promise. Does not block the event loop. */
async function checkAsync(username, password) {
  const { salt, hash } = users.get(username) ?? NOBODY;
  return timingSafeEqual(hash, await pbkdf2Async(password, salt, ITERATIONS, HASH_BYTES, DIGEST));
}

module.exports = { addUser, checkAsync, checkSync };
