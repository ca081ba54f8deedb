'use strict';

// A JSON API as small as they come: one document, built at start, serialised by Express for each request.
// It reads PORT and nothing else; what NODE_ENV changes is what Express itself makes of it.

const express = require('express');
const { buildCatalogue } = require('./catalogue');

const STOP_GRACE_MS = 1000;

const app = express();
const catalogue = buildCatalogue();
let requests = 0;

app.get('/', (req, res) => {
  requests += 1;
  res.json(catalogue);
});

app.get('/healthz', (req, res) => {
  res.sendStatus(200);
});

// Requests to `/` that this process has answered or begun to: what a load generator's own count is checked against.
app.get('/count', (req, res) => {
  res.json({ requests });
});

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', (error) => {
  if (error) throw error;
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});

// Requests under way are finished; connections that a client keeps open are cut after the grace.
process.once('SIGTERM', () => {
  server.close();
  setTimeout(() => server.closeAllConnections(), STOP_GRACE_MS).unref();
});
