import type { Event } from './events.js';
import type { Load as Loaded } from './load.js';
import type { Report as Measured } from './report.js';

export type { Event };

/** Results of limits, as `proofload gate --json` prints them. */
export interface Gate {
  outcome: 'pass' | 'fail' | 'inconclusive' | 'not_judged';
  [field: string]: any;
}

/** The output of `proofload report --json`, and the results of limits. */
export type Report = Measured & { gate?: Gate };

/** The output of `proofload load --json`. */
export type Load = Loaded & { gate?: Gate };

/** Flags of the command by their long names in camel case: `{ rate: '60%', expectStatus: [200, 404], explain: true }`. */
export interface Flags {
  [flag: string]: string | number | boolean | readonly (string | number)[] | undefined;
}

export interface Control {
  /** Stops the run as Ctrl-C does. The promise is rejected once services are stopped and the record is closed. */
  signal?: AbortSignal | undefined;
  /** Gets each event of the run as it happens. */
  onEvent?: ((event: Event) => void) | undefined;
}

/** Loads a URL. */
export function load(url: string, flags?: Flags, control?: Pick<Control, 'signal'>): Promise<Load>;

/** Runs an experiment file. The report of one with `[measure]` is that of a load: `run<Load>(file)`. */
export function run<Made extends Report | Load = Report>(file: string, flags?: Flags, control?: Control): Promise<Made>;

/** Compares services by the commands that start them, or by their URLs; the first is the baseline. */
export function compare(services: readonly string[], flags?: Flags, control?: Control): Promise<Report>;

/** Rejects where the exit code is not 0. Its `name` is `AbortError` after an abort, with the signal's reason as `cause`. */
export class ProofloadError extends Error {
  /** As in docs/architecture.md: 1 a limit fails, 4 invalid, 5 inconclusive, 130 interrupted. */
  exitCode: number;
  /** What Proofload said to people, hints included. */
  stderr: string;
  /** What was measured nevertheless. */
  report?: Report | Load;
}
