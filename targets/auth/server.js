'use strict';

// A common log-in service: it hashes a password for each request, by the call that blocks (/auth) or by the one that does not (/auth2).
// /ping stands for everything else that such a service does. It reads PORT, HOST, KEEP_ALIVE_S and HASH_ITERATIONS. It is only there to be
// measured: a real service must not take passwords in a query string, which ends up in every log on the way.

const http = require('node:http');
const express = require('express');
const { serve } = require('../serving');
const { addUser, checkAsync, checkSync } = require('./users');

// Workers of a cluster share no memory, so each has this user from the start, and load needs no preparation.
addUser('ada', 'lovelace');

const app = express();
let requests = 0;

app.get('/healthz', (req, res) => {
  res.sendStatus(200);
});

// Requests to the three routes under load that this process has received, to check a load generator's own count.
app.get('/count', (req, res) => {
  res.json({ requests });
});

app.get(['/ping', '/auth', '/auth2'], (req, res, next) => {
  requests += 1;
  next();
});

app.get('/ping', (req, res) => {
  res.send('pong');
});

app.get(['/newUser', '/auth', '/auth2'], (req, res, next) => {
  const { username, password } = req.query;
  if (isText(username) && isText(password)) next();
  else res.sendStatus(400);
});

app.get('/newUser', ({ query }, res) => {
  res.sendStatus(addUser(query.username, query.password) ? 200 : 409);
});

app.get('/auth', ({ query }, res) => {
  res.sendStatus(checkSync(query.username, query.password) ? 200 : 401);
});

app.get('/auth2', async ({ query }, res) => {
  res.sendStatus((await checkAsync(query.username, query.password)) ? 200 : 401);
});

const server = http.createServer(app);
// After this time without a request Node closes a connection; 5 s by default. A busy event loop also counts the time in which
// a request is not yet read, and then resets the connection.
if (process.env.KEEP_ALIVE_S) server.keepAliveTimeout = Number(process.env.KEEP_ALIVE_S) * 1000;
// While a hash blocks the event loop nobody accepts: with Node's backlog of 511, a client that opens 1,200 connections at once has to
// try again after a second.
serve(server, { backlog: 4096 });

// A parameter that is given twice is a list.
function isText(value) {
  return typeof value === 'string' && value !== '';
}
