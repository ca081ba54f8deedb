// The serialiser of a schema.
'use strict';
const string = { type: 'string' };
const properties = { id: { type: 'integer' }, name: string, price: { type: 'number' }, tags: { type: 'array', items: string } };
module.exports = require('fast-json-stringify')({ type: 'array', items: { type: 'object', properties } });
