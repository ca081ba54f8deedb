'use strict';

// WORK: each response is signed with a key that is derived from its path, by the call that blocks the event loop, by the one that
// hands the work to a thread of libuv's pool, or not at all. Gives middleware; the signature is in the header X-Signature.

const { pbkdf2, pbkdf2Sync } = require('node:crypto');
const { chosen } = require('../choice');

// About 0.3 ms of CPU time: what a request may well spend in one call, and enough to be worth a visit to another thread. Not every
// call is: a small file in the page cache costs 0.014 ms by readFileSync and 0.1 ms by its promise, which goes to
// the pool several times (CPU time on Node 20.20, 2026-11-21).
const ITERATIONS = 500;
const KEY_BYTES = 32;
const PARAMETERS = ['secret of this station', ITERATIONS, KEY_BYTES, 'sha512'];

const none = (req, res, next) => next();

function inLoop(req, res, next) {
  sign(res, pbkdf2Sync(req.path, ...PARAMETERS));
  next();
}

function inPool(req, res, next) {
  pbkdf2(req.path, ...PARAMETERS, (error, key) => {
    if (!error) sign(res, key);
    next(error);
  });
}

function sign(res, key) {
  res.set('X-Signature', key.toString('hex'));
}

const signer = () => chosen('WORK', { none, sync: inLoop, async: inPool });

module.exports = { signer };
