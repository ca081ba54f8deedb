'use strict';

// A common log-in service: it hashes a password for each request, by the call that blocks (/auth) or by the one that does not (/auth2).
// /ping stands for everything else that such a service does. It reads PORT, HOST and KEEP_ALIVE_S. It is only there to be measured: a
// real service must not take passwords in a query string, which ends up in every log on the way.

const express = require('express');
const { addUser, checkAsync, checkSync } = require('./users');

const STOP_GRACE_MS = 1000;
const HOST = process.env.HOST ?? '127.0.0.1';

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

const server = app.listen(Number(process.env.PORT ?? 3000), HOST, (error) => {
  if (error) throw error;
  console.log(`listening on http://${HOST}:${server.address().port}`);
});

// After this time without a request Node closes a connection; 5 s by default. A busy event loop also counts the time in which
// a request is not yet read, and then resets the connection.
if (process.env.KEEP_ALIVE_S) server.keepAliveTimeout = Number(process.env.KEEP_ALIVE_S) * 1000;

// Requests under way are finished; connections that are still open after the grace period are closed.
process.once('SIGTERM', () => {
  server.close();
  setTimeout(() => server.closeAllConnections(), STOP_GRACE_MS).unref();
});

// A parameter that is given twice is a list.
function isText(value) {
  return typeof value === 'string' && value !== '';
}
