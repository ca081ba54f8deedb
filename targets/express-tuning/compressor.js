'use strict';

// COMPRESSION: whether and how hard responses are compressed. Returns middleware.

const { constants } = require('node:zlib');
const compression = require('compression');
const { chosen } = require('../choice');

/**
 * By default gzip at zlib's level 6 and Brotli at 4. `level: 9`, which is often written for "best", leaves Brotli at 4; here
 * `best` is the top of both scales, 9 and 11. The client's Accept-Encoding decides which of the two is used.
 */
const compressor = () =>
  chosen('COMPRESSION', {
    off: () => (req, res, next) => next(),
    default: () => compression(),
    best: () =>
      compression({
        level: constants.Z_BEST_COMPRESSION,
        brotli: { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } },
      }),
  })();

module.exports = { compressor };
