'use strict';

// A minimal JSON API: one document, built at start, serialised by Express for each request. It reads PORT, HOST and
// COMPRESSION; only Express itself reads NODE_ENV.

const http = require('node:http');
const { constants } = require('node:zlib');
const compression = require('compression');
const express = require('express');
const { chosen } = require('../choice');
const { serve } = require('../serving');
const { buildCatalogue } = require('./catalogue');

// What COMPRESSION may be. The middleware sends the first of br, gzip and deflate that the client accepts. By default it compresses
// gzip at zlib's level 6 and Brotli at 4; `level: 9`, which is often written for "best", leaves Brotli at 4. Here `best` is
// the top of either scale: 9 and 11.
const COMPRESSORS = {
  off: null,
  default: compression(),
  best: compression({
    level: constants.Z_BEST_COMPRESSION,
    brotli: { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } },
  }),
};

const app = express();
const compressor = chosen('COMPRESSION', COMPRESSORS);
if (compressor) app.use(compressor);
const catalogue = buildCatalogue();
let requests = 0;

app.get('/', (req, res) => {
  requests += 1;
  res.json(catalogue);
});

app.get('/healthz', (req, res) => {
  res.sendStatus(200);
});

// Requests to `/` that this process has received, to check a load generator's own count.
app.get('/count', (req, res) => {
  res.json({ requests });
});

serve(http.createServer(app));
