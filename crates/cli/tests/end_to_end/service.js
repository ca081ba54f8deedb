// A service that behaves as MODE says, for the end-to-end tests. It counts requests to / and says the count when it ends.
"use strict";

const http = require("node:http");
const net = require("node:net");
const zlib = require("node:zlib");

const mode = process.env.MODE ?? "ok";
const port = Number(process.env.PORT);
const spinMs = Number(process.env.SPIN_MS ?? 0);
const delayMs = Number(process.env.DELAY_MS ?? 0);
// From so many ms after the first request on it responds to nothing for so many ms; then to what waits.
const freezeAt = Number(process.env.FREEZE_AT ?? Infinity);
const freezeFor = Number(process.env.FREEZE_FOR ?? 0);
let requests = 0;
let firstAt;

function frozenFor() {
  firstAt ??= Date.now();
  const end = freezeAt + freezeFor - (Date.now() - firstAt);
  return end > 0 && end <= freezeFor ? end : 0;
}

function spin() {
  const end = process.hrtime.bigint() + BigInt(Math.round(spinMs * 1e6));
  while (process.hrtime.bigint() < end);
}

function answer(request, response) {
  if (request.url === "/healthz") return response.end("ok");
  const wait = freezeFor > 0 ? frozenFor() : 0;
  if (wait > 0) return setTimeout(() => answer(request, response), wait);
  requests += 1;
  spin();
  switch (mode) {
    case "500":
      response.statusCode = 500;
      return response.end("no");
    case "half-500":
      response.statusCode = requests % 2 ? 200 : 500;
      return response.end("x");
    case "broken-gzip":
      response.setHeader("content-encoding", "gzip");
      return response.end("no gzip at all");
    case "charset-as-coding":
      response.setHeader("content-encoding", "UTF-8");
      return response.end("{}");
    case "die":
      if (requests > 100) {
        console.error("out of luck after many requests");
        process.exit(9);
      }
      return response.end("x".repeat(1000));
    case "close":
      response.setHeader("connection", "close");
      return response.end("x".repeat(1000));
    case "gzip":
      if (!/gzip/.test(request.headers["accept-encoding"] ?? "")) return response.end("x".repeat(1000));
      response.setHeader("content-encoding", "gzip");
      return response.end(zlib.gzipSync("x".repeat(1000)));
    case "silent":
      return undefined;
    case "mix":
      return setTimeout(() => response.end("x".repeat(1000)), request.url === "/slow" ? delayMs : 0);
    case "delay":
      return setTimeout(() => response.end("x".repeat(1000)), delayMs);
    default:
      return response.end("x".repeat(1000));
  }
}

// Answers below HTTP: garbage, and a body shorter than its length.
function raw(text) {
  return net.createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (data) => {
      const health = String(data).startsWith("GET /healthz");
      if (!health) requests += 1;
      socket.write(health ? "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n" : text);
      if (!health) socket.end();
    });
  });
}

const servers = {
  garbage: () => raw("garbage\r\n\r\n"),
  short: () => raw("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nshort"),
};

if (mode === "exit") {
  console.error("cannot find the configuration: giving up");
  process.exit(7);
}
if (mode !== "hang") {
  const server = (servers[mode] ?? (() => http.createServer(answer)))();
  server.listen(port, process.env.HOST ?? "127.0.0.1");
} else {
  setInterval(() => {}, 1000);
}
if (mode === "flood") {
  setInterval(() => process.stdout.write("flood ".repeat(20000)), 1);
}
process.on("SIGTERM", () => {
  process.stdout.write(`requests ${requests}\n`, () => process.exit(0));
});
