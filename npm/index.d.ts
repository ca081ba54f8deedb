import type { Event } from './events.js';
import type { Report as Measured } from './report.js';

export type { Event };

/** What `proofload report --json` prints. With limits `gate` says what they came to. */
export type Report = Measured & { gate?: { [field: string]: any } };

/** What `proofload load --json` prints. With several rates the figures of each are in `steps`. */
export interface Load {
  throughput_per_s?: number;
  steps?: { [field: string]: any }[];
  /** Why the measurement is invalid; null where it is not. */
  void: string | null;
  [field: string]: any;
}

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
