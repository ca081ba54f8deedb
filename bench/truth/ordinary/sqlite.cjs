// Rows of an SQLite database in memory by better-sqlite3, with an index or without, with one statement or one for each request.
'use strict';
const database = new (require('better-sqlite3'))(':memory:');
const { INDEX, PREPARE, PORT } = process.env;
database.exec('create table items (id integer primary key, key text, value text)');
const insert = database.prepare('insert into items (key, value) values (?, ?)');
database.transaction(() => { for (let id = 0; id < 5000; id++) insert.run(`key ${id}`, `value ${id}`); })();
if (INDEX === 'on') database.exec('create index by_key on items (key)');

const prepared = () => database.prepare('select * from items where key = ?');
const once = prepared();
let count = 0;
require('http').createServer((request, response) => {
  const statement = PREPARE === 'each' ? prepared() : once;
  response.end(JSON.stringify(statement.get(`key ${(count += 997) % 5000}`)));
}).listen(PORT, '127.0.0.1');
