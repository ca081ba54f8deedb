'use strict';

// A server-rendered page: layout, includes and mixins in Pug, and locals put together for each request, as an
// application does. Whether compiled views are kept is left to Express, which decides by NODE_ENV.

const http = require('node:http');
const path = require('node:path');
const express = require('express');
const { serve } = require('../serving');
const { listOrders } = require('./orders');

const ROWS = 200;

const app = express();
app.set('views', path.join(__dirname, 'views'));
app.set('view engine', 'pug');
let requests = 0;

app.get('/', (req, res) => {
  requests += 1;
  const orders = listOrders(ROWS);
  const totalCents = orders.reduce((sum, order) => sum + order.totalCents, 0);
  res.render('orders', {
    title: 'Orders',
    user: { name: 'Noor Visser', role: 'dispatch' },
    path: req.path,
    orders,
    summary: { count: orders.length, late: orders.filter((order) => order.late).length, totalCents },
  });
});

app.get('/healthz', (req, res) => {
  res.sendStatus(200);
});

// Requests to `/` that this process has received, to check a load generator's own count.
app.get('/count', (req, res) => {
  res.json({ requests });
});

serve(http.createServer(app));
