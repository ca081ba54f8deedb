// An Express application. ETAG, COMPRESSION, MIDDLEWARES and PARSER are what comparisons vary.
'use strict';
const express = require('express');
const { env } = process;
const app = express();
const list = Array.from({ length: Number(env.ITEMS ?? 1) }, (_, id) => ({ id, name: `item ${id}` }));

app.set('etag', env.ETAG === 'off' ? false : 'weak');
if (env.COMPRESSION) app.use(require('compression')());
for (let count = 0; count < Number(env.MIDDLEWARES ?? 0); count++) app.use((request, response, next) => next());
if (env.PARSER) app.use(express[env.PARSER]({ type: 'application/json', limit: '1mb' }));
app.get('/', (request, response) => response.json(list));
app.post('/', (request, response) => response.json({ length: request.body.length }));
app.listen(env.PORT, '127.0.0.1');
