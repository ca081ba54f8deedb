'use strict';

// The six routes: a JSON source, small or large, from the disk or the network, read as a stream or as a whole. Both ways
// find the same, and respond the same.

const path = require('node:path');
const express = require('express');
const { fileSource, httpSource } = require('../sources');
const { findByPromise, findByStream } = require('../finding');

/** A router for sources in `folder` and at the origin `upstream`. */
function dataRoutes({ folder, upstream }) {
  const smallDisk = fileSource(path.join(folder, 'small.json'));
  const smallNet = httpSource(new URL('/small.json', upstream));
  const largeNet = httpSource(new URL('/large.json', upstream));
  const bySpeaker = ({ speakerId }) => (speaker) => String(speaker.id) === speakerId;
  const byZipcode = ({ zipcode }) => (place) => place.zipcode === zipcode;

  const router = express.Router();
  router.get('/small/net/stream/:speakerId', respond(findByStream, smallNet, bySpeaker));
  router.get('/small/net/promise/:speakerId', respond(findByPromise, smallNet, bySpeaker));
  router.get('/small/disk/stream/:speakerId', respond(findByStream, smallDisk, bySpeaker));
  router.get('/small/disk/promise/:speakerId', respond(findByPromise, smallDisk, bySpeaker));
  router.get('/large/stream/:zipcode', respond(findByStream, largeNet, byZipcode));
  router.get('/large/promise/:zipcode', respond(findByPromise, largeNet, byZipcode));
  return router;
}

// A request whose client is gone must stop reading: the rest of two gigabytes would be read for nobody, beside later requests.
function respond(find, source, matcher) {
  return async (req, res) => {
    const abort = new AbortController();
    res.once('close', () => {
      if (!res.writableFinished) abort.abort();
    });
    res.json(await find(source, matcher(req.params), abort.signal));
  };
}

module.exports = { dataRoutes };
