'use strict';

// Where JSON comes from: a file or a URL, each as a stream of bytes and as one value. It must not look into the JSON.

const fs = require('node:fs');
const http = require('node:http');
const { json } = require('node:stream/consumers');

/** The file at `path`: `open(signal)` promises an async iterable of its bytes, `json(signal)` its value. */
function fileSource(path) {
  return {
    open: async (signal) => fs.createReadStream(path, { signal }),
    json: async (signal) => JSON.parse(await fs.promises.readFile(path, { encoding: 'utf8', signal })),
  };
}

/**
 * The same for a document at `url`.
 *
 * Both use one client, so that they differ in the reading and in nothing else. With fetch, which gathers all bytes before
 * it makes a string of them, two gigabytes would take 3.9 GB before they fail.
 */
function httpSource(url) {
  return {
    open: (signal) => get(url, signal),
    json: async (signal) => json(await get(url, signal)),
  };
}

function get(url, signal) {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { signal }, (response) => {
      if (response.statusCode === 200) {
        resolve(response);
      } else {
        response.resume(); // or its connection would not become free
        reject(new Error(`${url} answered ${response.statusCode}`));
      }
    });
    request.on('error', reject);
  });
}

module.exports = { fileSource, httpSource };
