'use strict';
const app = require('fastify')();
app.get('/', async () => [{ id: 0, name: 'item 0' }]);
app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
