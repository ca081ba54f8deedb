// WORKERS processes of node.cjs behind one port.
'use strict';
const cluster = require('cluster');
if (cluster.isPrimary) for (let count = 0; count < Number(process.env.WORKERS); count++) cluster.fork();
else require('./node.cjs');
