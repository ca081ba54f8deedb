// The binary as functions. Each runs it once, and gives the report that it prints as JSON.

import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { stripVTControlCharacters } from 'node:util';
import { binary, environment } from './binary.js';

const MEANINGS = { 1: 'a limit fails', 4: 'the measurement is invalid', 5: 'a limit is inconclusive', 130: 'interrupted' };

export class ProofloadError extends Error {
  constructor(exitCode, stderr, report, options) {
    const told = stderr.match(/^error: [^]*/m)?.[0].slice('error: '.length).trim();
    const meaning = MEANINGS[exitCode] ?? `exit code ${exitCode}, and no report`;
    super(told ?? [meaning, ...reasons(report)].join(': '), options);
    this.name = options ? 'AbortError' : 'ProofloadError';
    Object.assign(this, { exitCode, stderr, report });
  }
}

/** What in a report stands behind the exit code. */
function reasons({ gate, findings = [] } = {}) {
  const ruled = (as) => gate?.limits.filter(({ outcome }) => outcome === as) ?? [];
  const limits = ruled('fail').length > 0 ? ruled('fail') : ruled('inconclusive');
  if (limits.length > 0) return [limits.map(({ limit, reason }) => (reason ? `${limit} (${reason})` : limit)).join(', ')];
  if (gate?.not_judged?.because === 'too_few_blocks') return [gate.not_judged.reason];
  return findings.filter(({ grade }) => grade === 'invalid').slice(0, 1).map(({ number, evidence, remedy }) => `${evidence} (${number}); ${remedy}`);
}

export function load(url, flags, { signal } = {}) {
  let text = '';
  return start(['load', ...words({ ...flags, json: true }), '--', url], signal, (piece) => { text += piece; }, () => JSON.parse(text));
}

export const run = (file, flags, control) => experiment(['run', ...words({ ...flags, events: true }), '--', file], control);

export const compare = (services, flags, control) => experiment(['compare', ...words({ ...flags, events: true }), '--', ...services], control);

function experiment(args, { signal, onEvent } = {}) {
  let rest = '';
  let report;
  const read = (piece) => {
    const lines = (rest + piece).split('\n');
    rest = lines.pop();
    for (const event of lines.map((line) => JSON.parse(line))) {
      if ('report' in event) report = event.report;
      if ('gate' in event) report.gate = event.gate;
      onEvent?.(event);
    }
  };
  return start(args, signal, read, () => report);
}

/** `{ expectStatus: [200, 404] }` is `--expect-status=200 --expect-status=404`. */
function words(flags) {
  const given = Object.entries(flags).filter(([, value]) => value !== undefined && value !== false);
  return given.flatMap(([name, value]) => {
    const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    return value === true ? [flag] : [value].flat().map((one) => `${flag}=${one}`);
  });
}

const stops = new WeakMap();

/** Calls `stop` on an abort. Returns what ends that. Each signal has one listener: Node.js warns of more than ten. */
function onAbort(signal, stop) {
  if (!signal) return () => {};
  let all = stops.get(signal);
  if (!all) {
    stops.set(signal, all = new Set());
    signal.addEventListener('abort', () => all.forEach((each) => each()), { once: true });
  }
  all.add(stop);
  return () => all.delete(stop);
}

/** Runs the binary: `read` takes what it prints, `result` gives what that comes to. */
function start(args, signal, read, result) {
  return new Promise((resolve, reject) => {
    // The error of spawn would repeat the whole argument, which may be a secret.
    if (args.some((arg) => arg.includes('\0'))) throw new TypeError('an argument contains a NUL byte');
    if (signal?.aborted) throw new ProofloadError(130, '', undefined, { cause: signal.reason });
    const child = spawn(binary(), args, { env: environment(), stdio: ['ignore', 'pipe', 'pipe'] });
    const stop = () => child.kill('SIGINT');
    const leave = onAbort(signal, stop);

    let stderr = '';
    let failure;
    // There is neither where this process has too many files open: then comes an error.
    child.stderr?.setEncoding('utf8').on('data', (piece) => { stderr += piece; });
    child.stdout?.setEncoding('utf8').on('data', (piece) => {
      if (failure) return;
      try {
        read(piece);
      } catch (error) {
        failure = error;
        stop();
      }
    });
    child.on('error', (error) => {
      // Flags may be secrets, and whoever prints an error prints all that it has.
      delete error.spawnargs;
      failure = error;
    });
    child.on('close', (code, killedBy) => {
      leave();
      if (failure) return reject(failure);
      let report;
      try {
        report = result();
      } catch {
        // No report was printed. The exit code and stderr say why.
      }
      if (code === 0 && report) return resolve(report);
      const exitCode = code ?? 128 + constants.signals[killedBy];
      // CLICOLOR_FORCE gives it colours in a pipe, too.
      reject(new ProofloadError(exitCode, stripVTControlCharacters(stderr), report, signal?.aborted ? { cause: signal.reason } : undefined));
    });
  });
}
