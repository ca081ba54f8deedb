'use strict';

// WORK: each response is signed with a key that is derived from its path, by the call that blocks the event loop, by the one that
// hands the work to a thread of libuv's pool, or not at all. Gives middleware; the signature is in the header X-Signature.

const { pbkdf2, pbkdf2Sync } = require('node:crypto');
const { chosen } = require('./choice');

// Some tenths of a millisecond: what a request may well spend in one call, and enough to be worth a visit to another thread.
const ITERATIONS = 250;
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
