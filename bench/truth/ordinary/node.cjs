// Services without packages. MODE names one; the other variables are what a comparison varies.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const zlib = require('zlib');

const { env } = process;
const number = (name, otherwise) => Number(env[name] ?? otherwise);

/** Work that takes the same turns each time. */
function spin(turns) {
  let sum = 0;
  for (let turn = 0; turn < turns; turn++) sum = (sum * 31 + turn) | 0;
  return String(sum);
}

const items = Array.from({ length: 100 }, (_, id) => ({ id, name: `item ${id}`, price: id * 1.5, tags: ['new', 'sale'] }));
const text = JSON.stringify(Array.from({ length: 20 }, () => items));
const derive = (salt) => crypto.pbkdf2Sync('secret', salt, 300, 32, 'sha256').toString('hex');

/** The file that responses come from or lines go to, of this process alone. */
function scratch(content) {
  const path = `${env.ORDINARY_TMP}/${process.pid}`;
  fs.writeFileSync(path, content);
  return path;
}

function lines() {
  const file = scratch('');
  const line = (request) => `${JSON.stringify({ at: new Date(), method: request.method, url: request.url, headers: request.headers })}\n`;
  const stream = fs.createWriteStream(file);
  const descriptor = fs.openSync(file, 'a');
  return {
    none: () => {},
    console: (request) => console.log(line(request)),
    sync: (request) => fs.writeSync(descriptor, line(request)),
    stream: (request) => stream.write(line(request)),
  }[env.LOG];
}

const joined = () => `[${items.map(({ id, name, price, tags }) => `{"id":${id},"name":"${name}","price":${price},"tags":["${tags.join('","')}"]}`)}]`;

function templates() {
  const source = '`<ul>${items.map((item) => `<li>${item.name}: ${item.price}</li>`).join("")}</ul>`';
  const compiled = () => new Function('items', `return ${source}`);
  const once = compiled();
  return env.TEMPLATE === 'cached' ? () => once(items) : () => compiled()(items);
}

/** Maps keys that come round to values that are costly, and forgets the oldest beyond SIZE. */
function cache() {
  const [known, size, keys] = [new Map(), number('SIZE', 0), number('KEYS', 1)];
  let count = 0;
  return () => {
    const key = String(count++ % keys);
    const value = known.get(key) ?? derive(key);
    if (size > 0 && !known.has(key)) known.set(key, value);
    if (known.size > size) known.delete(known.keys().next().value);
    return value;
  };
}

/** Responds with what `give` returns. */
const gives = (give) => (request, response) => response.end(give(request));

const modes = {
  hello: () => gives(() => 'hello'),
  headers: () => (request, response) => {
    for (let at = 0; at < number('HEADERS', 0); at++) response.setHeader(`x-header-${at}`, 'value');
    response.end('hello');
  },
  size: () => {
    const body = Buffer.alloc(number('SIZE'), 'x');
    return (request, response) => response.setHeader('content-length', body.length).end(body);
  },
  spins: () => gives(() => spin(number('TURNS'))),
  waits: () => (request, response) => setTimeout(() => response.end(spin(number('TURNS', 0))), number('MS')),
  closes: () => (request, response) => {
    if (env.KEEP_ALIVE === 'off') response.setHeader('connection', 'close');
    response.end('hello');
  },
  // One request in ten takes 10 ms, of the event loop or of a timer; every tenth, or drawn.
  blocks: () => {
    let count = 0;
    const isSlow = () => (env.DRAWN ? Math.random() < 0.1 : ++count % 10 === 0);
    return (request, response) => {
      if (!isSlow()) return response.end('fast');
      if (env.SLOW === 'timer') return setTimeout(() => response.end('slow'), 10);
      for (const end = Date.now() + 10; Date.now() < end;);
      return response.end('slow');
    };
  },
  leaks: () => {
    const kept = [];
    return gives(() => {
      const bytes = Buffer.alloc(8192, 'x');
      if (env.LEAK) kept.push(bytes);
      return 'hello';
    });
  },
  limits: () => {
    let count = 0;
    setInterval(() => { count = 0; }, 1000);
    return (request, response) => {
      if (++count > number('LIMIT', Infinity)) response.statusCode = 429;
      response.end(spin(50_000));
    };
  },
  // Twice the work while it is cold, half of it from then on.
  cold: () => gives(() => spin(200_000 * (performance.now() < 1000 * number('COLD_S', 0) ? 2 : number('WARM', 1)))),
  caches: () => gives(cache()),
  logs: () => {
    const log = lines();
    return gives((request) => {
      log(request);
      return 'hello';
    });
  },
  json: () => gives({ stringify: () => JSON.stringify(items), join: joined, fast: () => require('./fast.cjs')(items) }[env.FORM]),
  hashes: () => (request, response) => {
    if (env.FORM === 'sync') return response.end(derive('salt'));
    return crypto.pbkdf2('secret', 'salt', number('TURNS', 300), 32, 'sha256', (error, key) => response.end(key.toString('hex')));
  },
  gzip: () => (request, response) => {
    if (env.LEVEL === 'none') return response.end(text);
    response.setHeader('content-encoding', 'gzip');
    return zlib.gzip(text, { level: number('LEVEL') }, (error, body) => response.end(body));
  },
  templates: () => gives(templates()),
  regex: () => {
    const source = '"id":(\\d+),"name":"([^"]+)"';
    const [compiled, short] = [() => new RegExp(source, 'g'), text.slice(0, 6000)];
    const once = compiled();
    return gives(() => String([...short.matchAll(env.REGEX === 'once' ? once : compiled())].length));
  },
  files: () => {
    const file = scratch(text);
    return (request, response) => {
      if (env.READ === 'stream') return fs.createReadStream(file).pipe(response);
      return fs.readFile(file, (error, body) => response.end(body));
    };
  },
  // Objects that survive some hundred requests: with a small young generation they are copied and promoted.
  garbage: () => {
    const kept = Array(500);
    let count = 0;
    return gives(() => {
      kept[count++ % kept.length] = items.map((item) => ({ ...item, count }));
      return 'hello';
    });
  },
  calls: () => {
    const agent = new http.Agent({ keepAlive: env.KEEP_ALIVE !== 'off', maxSockets: number('POOL', Infinity) });
    return (request, response) => {
      http.get({ port: env.UPSTREAM, host: '127.0.0.1', agent }, (upstream) => upstream.pipe(response)).on('error', () => {
        response.statusCode = 502;
        response.end();
      });
    };
  },
};

http.createServer(modes[env.MODE]()).listen(env.PORT, '127.0.0.1');
