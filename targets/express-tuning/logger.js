'use strict';

// LOGGER: which logger writes a line to standard output for each response, or none. Returns middleware.

const pino = require('pino');
const { chosen } = require('../choice');

// console.log writes each line before it returns, and so does pino by default. With the settings that its guide gives for
// speed it buffers 4 KB and writes them later. The rest of the buffer is written before the process ends.
const ASYNCHRONOUS = { dest: 1, minLength: 4096, sync: false };

const LOGGERS = {
  none: () => (req, res, next) => next(),
  console: () => logging(({ method, url, status, ms }) => console.log(`${new Date().toISOString()} ${method} ${url} ${status} ${ms} ms`)),
  pino: () => {
    const logger = pino(pino.destination(ASYNCHRONOUS));
    return logging((request) => logger.info(request, 'request'));
  },
};

function logging(write) {
  return (req, res, next) => {
    const begun = performance.now();
    res.once('finish', () => {
      const ms = Math.round((performance.now() - begun) * 1000) / 1000;
      write({ method: req.method, url: req.originalUrl, status: res.statusCode, ms });
    });
    next();
  };
}

const logger = () => chosen('LOGGER', LOGGERS)();

module.exports = { logger };
