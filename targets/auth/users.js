'use strict';

// The users of one process, in memory, each with a salt and the PBKDF2 hash of the password. Two ways to check a password that do the
// same work: one in the event loop, one in a thread of libuv's pool. It must not know anything of HTTP.

const { pbkdf2, pbkdf2Sync, randomBytes, timingSafeEqual } = require('node:crypto');
const { promisify } = require('node:util');

// The cost of a public study of just these two ways, so that results can be set beside it.
const ITERATIONS = 10_000;
const HASH_BYTES = 512;
const DIGEST = 'sha512';
const SALT_BYTES = 128;

const pbkdf2Async = promisify(pbkdf2);
const users = new Map();

// Stands in for users that do not exist: who asks for one waits as long as with a wrong password, and so learns nothing.
const NOBODY = { salt: randomBytes(SALT_BYTES), hash: randomBytes(HASH_BYTES) };

/** Stores a user; false if there is one of that name. Blocks the event loop, as in the study: it is not what is measured. */
function addUser(username, password) {
  if (users.has(username)) return false;
  const salt = randomBytes(SALT_BYTES);
  users.set(username, { salt, hash: pbkdf2Sync(password, salt, ITERATIONS, HASH_BYTES, DIGEST) });
  return true;
}

/** Whether the password is this user's; the event loop stands still meanwhile. */
function checkSync(username, password) {
  const { salt, hash } = users.get(username) ?? NOBODY;
  return timingSafeEqual(hash, pbkdf2Sync(password, salt, ITERATIONS, HASH_BYTES, DIGEST));
}

/** The same, as a promise; the event loop is free meanwhile. */
async function checkAsync(username, password) {
  const { salt, hash } = users.get(username) ?? NOBODY;
  return timingSafeEqual(hash, await pbkdf2Async(password, salt, ITERATIONS, HASH_BYTES, DIGEST));
}

module.exports = { addUser, checkAsync, checkSync };
