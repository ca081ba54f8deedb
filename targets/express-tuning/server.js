'use strict';

// A station's departures as JSON (/) and as a page (/page), with the items of a tuning check-list as switches: NODE_ENV,
// COMPRESSION=off|default|best, WORK=none|sync|async, LOGGER=none|console|pino; also PORT and HOST. Whoever starts it
// chooses processes and proxies.

const http = require('node:http');
const path = require('node:path');
const express = require('express');
const { serve } = require('../serving');
const { compressor } = require('./compressor');
const { logger } = require('./logger');
const { signer } = require('./signer');
const { buildTimetable } = require('./timetable');

const ROWS = 100;

const app = express();
app.set('views', path.join(__dirname, 'views'));
app.set('view engine', 'pug');
const timetable = buildTimetable();
let requests = 0;

app.get('/healthz', (req, res) => {
  res.sendStatus(200);
});

// Requests to `/` and `/page` that this process has received, to check a load generator's own count.
app.get('/count', (req, res) => {
  res.json({ requests });
});

app.get(['/', '/page'], (req, res, next) => {
  requests += 1;
  next();
});
app.use(logger(), compressor(), signer());

app.get('/', (req, res) => {
  res.json(timetable);
});

app.get('/page', (req, res) => {
  const { station, date, departures } = timetable;
  const delayed = departures.filter((departure) => departure.state === 'delayed').length;
  res.render('timetable', { title: `Departures from ${station}`, date, delayed, departures: departures.slice(0, ROWS) });
});

serve(http.createServer(app));
