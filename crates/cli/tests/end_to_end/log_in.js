'use strict';

// A shop that wants a log-in: a form with a token against forged requests, a password, and then a session cookie and a bearer token for the
// cart. On Express, or with MODE=h2 the same by hand, for Express does not speak HTTP/2. /seen tells what came.

const { createRequire } = require('node:module');
const http2 = require('node:http2');
const path = require('node:path');

const seen = { users: [], carts: 0, refused: 0 };
const sessions = new Map();

function form() {
  const id = `form-${Math.random()}`;
  sessions.set(id, `csrf-${Math.random()}`);
  return { cookie: id, csrf: sessions.get(id) };
}

function logIn(cookies, csrf, { user, password }) {
  const form = cookies.get('form');
  if (!form || sessions.get(form) !== csrf || password !== 'secret') return refuse();
  const session = { id: `session-${Math.random()}`, token: `token-"${Math.random()}` };
  sessions.set(session.id, session.token);
  seen.users.push(user);
  return session;
}

function cart(cookies, authorization) {
  const token = sessions.get(cookies.get('session'));
  const good = token && authorization === `Bearer ${token}` && !cookies.has('form');
  seen.carts += 1;
  return good ? true : refuse();
}

function refuse() {
  seen.refused += 1;
  return undefined;
}

function cookiesOf({ headers }) {
  const pairs = (headers.cookie ?? '').split('; ').filter(Boolean);
  return new Map(pairs.map((pair) => pair.split('=')));
}

function express() {
  const load = createRequire(path.join(__dirname, '../../../../targets/auth/server.js'));
  const framework = load('express');
  const app = framework();
  app.get('/seen', (req, res) => res.json(seen));
  app.get('/form', (req, res) => {
    const { cookie, csrf } = form();
    res.cookie('form', cookie).set('X-Csrf', csrf).send('a form');
  });
  app.post('/login', framework.json(), (req, res) => {
    const session = logIn(cookiesOf(req), req.get('X-Csrf'), req.body);
    if (!session) return res.sendStatus(403);
    res.clearCookie('form').cookie('session', session.id, { httpOnly: true, path: '/cart' });
    return res.status(201).json({ user: { token: session.token } });
  });
  app.get('/cart', (req, res) => {
    res.sendStatus(cart(cookiesOf(req), req.get('Authorization')) ? 200 : 401);
  });
  return app;
}

async function byHand(req, res) {
  const cookies = cookiesOf(req);
  let body = '';
  for await (const piece of req) body += piece;
  if (req.url === '/form') {
    const { cookie, csrf } = form();
    res.setHeader('Set-Cookie', `form=${cookie}; Path=/`);
    res.setHeader('X-Csrf', csrf);
    res.end();
  } else if (req.url === '/login') {
    const session = logIn(cookies, req.headers['x-csrf'], JSON.parse(body));
    res.statusCode = session ? 201 : 403;
    if (session) res.setHeader('Set-Cookie', ['form=; Max-Age=0; Path=/', `session=${session.id}; Path=/cart`]);
    res.end(JSON.stringify({ user: session }));
  } else {
    res.statusCode = req.url !== '/cart' ? 404 : cart(cookies, req.headers.authorization) ? 200 : 401;
    res.end();
  }
}

const port = Number(process.env.PORT);
if (process.env.MODE === 'h2') {
  http2.createServer(byHand).listen(port, '127.0.0.1');
} else {
  express().listen(port, '127.0.0.1');
}
process.once('SIGTERM', () => process.exit());
