// A service whose work is known, for the tests of what explains it. It says at its end, tenth of a second by tenth, how long a call
// of planted() took by its own clock.
//   TURNS     turns of a loop in planted(), beside the functions that every request runs
//   KEEP      numbers that keepForever() keeps of each request
//   CHILD     "bare": start ourselves again without NODE_OPTIONS, and let that one serve
"use strict";

const { spawn } = require("node:child_process");
const http = require("node:http");

const turns = Number(process.env.TURNS ?? 0);
const keep = Number(process.env.KEEP ?? 0);
const kept = [];
const SPAN_NS = 100_000_000n;
const spans = [];
let calls = [];
let spanFrom = 0n;
let sink = 1;
let requests = 0;

// Each has a loop of its own, so that its time is its own.
function alpha(state) {
  for (let index = 0; index < 50000; index += 1) state = (state ^ (state << 13)) | 1;
  return state;
}

function beta(state) {
  for (let index = 0; index < 40000; index += 1) state = (state ^ (state >>> 17)) + 1;
  return state | 1;
}

function gamma(state) {
  for (let index = 0; index < 30000; index += 1) state = (state ^ (state << 5)) | 3;
  return state;
}

function delta(state) {
  for (let index = 0; index < 20000; index += 1) state = Math.imul(state, 1664525) | 1;
  return state;
}

function planted(state) {
  for (let index = 0; index < turns; index += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
  }
  return state | 1;
}

function keepForever(state) {
  if (keep > 0) kept.push(new Array(keep).fill(requests));
  return state;
}

// Called from one place, so many that V8 inlines none: of one that is inlined V8's profiler gives the time to its caller.
const steps = [alpha, beta, gamma, delta, planted, keepForever];

function clock(from, to) {
  if (calls.length === 0) spanFrom = from;
  calls.push(Number(to - from) / 1000);
  if (to - spanFrom < SPAN_NS) return;
  const { count, us } = uninterrupted(calls);
  spans.push(`planted ${spanFrom} ${to} ${count} ${us.toFixed(3)}`);
  calls = [];
}

// A call that another process interrupted is longer, mostly by a time slice, and does not count. CPU time would not do: Node.js tells that of
// all threads together, those of the profilers among them. What profilers do in the thread itself is a few hundredths of a call.
function uninterrupted(calls) {
  const sorted = calls.sort((a, b) => a - b);
  const usual = sorted.filter((us) => us < 1.25 * sorted[sorted.length >> 1]);
  return { count: usual.length, us: usual.reduce((sum, us) => sum + us, 0) / usual.length };
}

function answer(request, response) {
  if (request.url === "/healthz") return response.end("ok");
  requests += 1;
  for (const step of steps) {
    const before = step === planted && turns > 0 ? process.hrtime.bigint() : null;
    sink = step(sink);
    if (before !== null) clock(before, process.hrtime.bigint());
  }
  return response.end("x".repeat(1000));
}

if (process.env.CHILD === "bare") {
  const { CHILD, NODE_OPTIONS, ...env } = process.env;
  const child = spawn(process.execPath, [__filename], { env, stdio: "inherit" });
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  child.on("exit", () => process.exit(0));
} else {
  http.createServer(answer).listen(Number(process.env.PORT), "127.0.0.1");
  process.on("SIGTERM", () => {
    process.stdout.write(`${spans.join("\n")}\n${requests} requests, sink ${sink}\n`, () => process.exit(0));
  });
}
