// Queries of the PostgreSQL at UPSTREAM: QUERY over a pool of POOL connections.
'use strict';
const { Pool } = require('pg');
const { POOL, PORT, QUERY, UPSTREAM } = process.env;
const pool = new Pool({ host: '127.0.0.1', port: Number(UPSTREAM), user: 'postgres', database: 'postgres', max: Number(POOL) });
require('http').createServer(async (request, response) => {
  const { rows } = await pool.query(QUERY, [Math.floor(Math.random() * 20_000)]);
  response.end(JSON.stringify(rows));
}).listen(PORT, '127.0.0.1');
