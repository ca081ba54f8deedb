'use strict';

// The application, the same below both entry points in bin/. It reads DATA, the folder of the data sets, and UPSTREAM,
// the origin that serves the same folder. It must not know how many processes of it there are.

const path = require('node:path');
const express = require('express');
const { dataRoutes } = require('./routes/data');

const app = express();
let requests = 0;

app.use('/data', (req, res, next) => {
  requests += 1;
  next();
});

app.use('/data', dataRoutes({
  folder: process.env.DATA ?? path.join(__dirname, 'data'),
  upstream: process.env.UPSTREAM ?? 'http://127.0.0.1:3001',
}));

app.get('/healthz', (req, res) => {
  res.sendStatus(200);
});

// Requests to the data routes that this process has received, to check a load generator's own count.
app.get('/count', (req, res) => {
  res.json({ requests });
});

// A source that cannot be read fails its request and nothing else. Express recognises an error handler by its four
// parameters.
app.use((error, req, res, next) => {
  if (res.destroyed) return; // the client is gone, which stopped the reading
  const code = error.code ?? error.name;
  console.error(`${req.originalUrl}: ${code}: ${error.message}`);
  if (res.headersSent) {
    next(error);
  } else {
    res.status(500).json({ error: { code, message: error.message } });
  }
});

module.exports = app;
