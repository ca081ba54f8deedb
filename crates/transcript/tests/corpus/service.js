'use strict'
// The service that the corpus was measured on: fixed bodies, slow and failing answers. It must not be loaded from elsewhere
// than this machine, and tells what a client sent only at /headers.
const http = require('node:http')
const zlib = require('node:zlib')

const json = Buffer.from(JSON.stringify({ items: 'x'.repeat(20000) }))
const packed = zlib.gzipSync(json)

const answers = {
  '/small': (_, response) => response.end('x'.repeat(1000)),
  '/json': (request, response) => {
    const gzip = /\bgzip\b/.test(request.headers['accept-encoding'] || '')
    if (gzip) response.setHeader('content-encoding', 'gzip')
    response.end(gzip ? packed : json)
  },
  '/slow': (_, response) => setTimeout(() => response.end('late'), 2500),
  '/error': (_, response) => {
    response.statusCode = 500
    response.end('x'.repeat(1000))
  },
  '/reset': (request) => request.socket.resetAndDestroy(),
  '/headers': (request, response) => {
    process.stdout.write(`HTTP/${request.httpVersion} ${request.headers['user-agent']}: ${JSON.stringify(request.headers)}\n`)
    response.end('noted')
  }
}

http.createServer((request, response) => {
  const answer = answers[request.url]
  response.setHeader('content-type', 'application/json')
  if (answer) return answer(request, response)
  response.statusCode = 404
  response.end('nothing here')
}).listen(Number(process.env.PORT), '127.0.0.1', () => process.stdout.write('ready\n'))
