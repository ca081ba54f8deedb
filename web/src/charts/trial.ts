// A trial from its begin to its end as panels that share their time: what each shows and where it has gaps. Pure.

import type { TimeLine, Unit } from '../model';
import { extent } from './axis';

/** One stretch of a trial with one figure. */
export interface Piece {
  from: number;
  to: number;
  value: number;
}

/** A figure over time, in the words of the page. */
export interface Track {
  name: string;
  values: (number | null)[];
  kind: 'line' | 'band';
}

export interface Panel {
  name: string;
  unit: Unit;
  tracks: Track[];
  /** Bars from zero, for what is counted. */
  bars: boolean;
  log: boolean;
  height: number;
}

/** The panels of a trial that have something to show, and sentences about those that have not. */
export function panelsOf(trial: TimeLine): { panels: Panel[]; notes: string[] } {
  const line = (name: string, values: (number | null)[]): Track => ({ name, values, kind: 'line' });
  const all: Panel[] = [
    { name: 'expected responses', unit: 'per_second', tracks: [line('rate', trial.rate_per_s)], bars: false, log: false, height: 84 },
    {
      name: 'response time',
      unit: 'microseconds',
      tracks: [line('p50', trial.p50_us), line('p90', trial.p90_us), line('p99', trial.p99_us)],
      bars: false,
      log: spreads(trial),
      height: 124,
    },
    { name: 'requests that failed', unit: 'count', tracks: [line('failed', trial.failed)], bars: true, log: false, height: 56 },
    { name: 'CPU of the services', unit: 'cores', tracks: [line('CPU', trial.cores)], bars: false, log: false, height: 66 },
    { name: 'memory of the services', unit: 'bytes', tracks: [line('memory', trial.rss_bytes)], bars: false, log: false, height: 66 },
    { name: 'CPU time the host gave to others', unit: 'share', tracks: [line('steal', trial.steal_share)], bars: true, log: false, height: 56 },
  ];
  const notes: string[] = [];
  const panels = all.filter((panel) => {
    const span = extent(panel.tracks.flatMap(({ values }) => values));
    if (span === null) return false;
    const nothing = panel.bars && span[1] === 0;
    if (nothing) notes.push(panel.unit === 'count' ? 'No request failed.' : 'The host gave no CPU time to others.');
    return !nothing;
  });
  return { panels, notes };
}

/** Whether the tail is so far from the middle that a linear axis would flatten the middle. */
function spreads(trial: TimeLine): boolean {
  const top = extent(trial.p99_us)?.[1] ?? 0;
  const middle = extent(trial.p50_us)?.[0] ?? 0;
  return middle > 0 && top > 20 * middle;
}

/** Runs of pieces that touch. Where nothing was measured, or no figure is there, a new run begins: gaps stay gaps. */
export function runsOf(trial: TimeLine, values: readonly (number | null)[]): Piece[][] {
  const runs: Piece[][] = [];
  let run: Piece[] = [];
  trial.at_s.forEach((from, index) => {
    const value = values[index] ?? null;
    const lasts = trial.lasts_s[index] ?? 0;
    const before = run[run.length - 1];
    // Slices follow each other with a breath in between that no reader would call a gap.
    const apart = before !== undefined && from - before.to > 0.25 * Math.max(lasts, before.to - before.from);
    if ((value === null || apart) && run.length > 0) {
      runs.push(run);
      run = [];
    }
    if (value !== null) run.push({ from, to: from + lasts, value });
  });
  if (run.length > 0) runs.push(run);
  return runs;
}

/** When warm-up ended and the trial did, in seconds; `warm` is 0 where there was none. */
export function spanOf(trial: TimeLine): { warm: number; end: number } {
  const last = trial.at_s.length - 1;
  const end = last < 0 ? 0 : (trial.at_s[last] ?? 0) + (trial.lasts_s[last] ?? 0);
  if (trial.warm_up <= 0) return { warm: 0, end };
  return { warm: trial.at_s[trial.warm_up] ?? end, end };
}
