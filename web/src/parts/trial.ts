// A trial of each variant from its start to its end, warm-up included, as panels that share their time.

import type { Chart, Line, Panel } from '../chart';
import { section } from '../elements';
import type { PageData, TimeLine, Unit } from '../model';
import { counted, figure, seconds } from '../numbers';
import { Chooser } from '../pictures';

export function trialOf({ time_lines: lines, variants, latencies }: PageData): HTMLElement | null {
  const there = lines.filter(({ at_s: at }) => at.length > 0);
  if (there.length === 0) return null;
  const names = there.map(({ variant }) => variants[variant]?.name ?? '');
  // A closed loop has service times alone.
  const kind = latencies[0]?.kind ?? 'response time';
  const pictures = there.map((line, index) => ({
    heading: names[index] ?? '',
    notes: notesOf(line),
    chart: () => trialChart(line, names[index] ?? '', kind),
  }));
  return section('trial', 'One trial over time', new Chooser('Variant', pictures, names).host);
}

function notesOf({ at_s: at, warm_up: warm, block, loop_delay_us: delay }: TimeLine): string[] {
  const count = counted(at.length - warm, 'point');
  const before = warm > 0 ? `${counted(warm, 'point')} of warm-up, shaded, which count for nothing, then ` : '';
  const notes = [`The trial of block ${block}: ${before}${count} of load.`];
  if (delay !== null) {
    const [median, p99] = delay.map((us) => figure('us', us));
    notes.push(`Event-loop delay, in captures apart from this trial: median ${median}, p99 ${p99}.`);
  }
  return notes;
}

/** One figure of a trial, point by point. */
interface Track {
  name: string;
  values: readonly (number | null)[];
  kind?: Line['kind'];
}

interface Shown {
  name: string;
  unit: Unit;
  tracks: Track[];
  /** Said instead where all of it is 0. */
  none?: string;
  log?: boolean;
  height: number;
}

function shownOf(trial: TimeLine, kind: string): Shown[] {
  const most = Math.max(...trial.p99_us.map((us) => us ?? 0));
  const least = Math.min(...trial.p50_us.map((us) => us ?? Infinity));
  const tail = (name: string, values: Track['values']): Track => ({ name, values, kind: 'edge' });
  const times = [{ name: 'p50', values: trial.p50_us }, tail('p90', trial.p90_us), tail('p99', trial.p99_us)];
  return [
    { name: 'expected responses', unit: 'per_s', tracks: [{ name: 'rate', values: trial.rate_per_s }], height: 90 },
    // Where the tail is so far from the middle a linear axis would flatten the middle.
    { name: `${kind}: median, shaded to 90 and 99 %`, unit: 'us', tracks: times, log: least > 0 && most > 20 * least, height: 130 },
    { name: 'requests that failed', unit: 'count', tracks: [{ name: 'failed', values: trial.failed, kind: 'area' }], none: 'No request failed.', height: 70 },
    { name: 'CPU of the services, cores', unit: 'number', tracks: [{ name: 'cores', values: trial.cores }], height: 75 },
    { name: 'memory of the services', unit: 'bytes', tracks: [{ name: 'memory', values: trial.rss_bytes }], height: 75 },
    { name: 'CPU steal', unit: 'share', tracks: [{ name: 'steal', values: trial.steal_share, kind: 'area' }], none: 'There was no CPU steal.', height: 70 },
  ];
}

function trialChart(trial: TimeLine, name: string, kind: string): Chart {
  const { columns, points } = stepsOf(trial);
  const last = trial.at_s.length - 1;
  const end = (trial.at_s[last] ?? 0) + (trial.lasts_s[last] ?? 0);
  const warm = trial.warm_up > 0 ? (trial.at_s[trial.warm_up] ?? end) : 0;
  const all = shownOf(trial, kind).map((shown) => ({ shown, values: shown.tracks.flatMap(({ values }) => values).filter((value) => value !== null) }));
  const isNothing = ({ shown, values }: (typeof all)[number]): boolean => shown.none !== undefined && values.every((value) => value === 0);
  const panels = all.filter((one) => one.values.length > 0 && !isNothing(one)).map(({ shown }, index, { length }): Panel => ({
    axis: { name: shown.name, unit: shown.unit, log: shown.log ?? false, zero: true },
    height: shown.height + (index === length - 1 ? 26 : 0),
    lines: shown.tracks.map((track) => lineOf(trial.variant, shown.unit, track, points)),
    shades: warm > 0 ? [{ axis: 'x', from: 0, to: warm, ink: '--plot-warm' }] : [],
    bands: shown.tracks.length > 1 ? [[2, 1], [1, 0]] : [],
  }));
  return {
    label: `Time line of a trial of ${name}`,
    summary: () => `Block ${trial.block}, ${seconds(end)}, of them ${seconds(warm)} of warm-up.`,
    axis: { name: 'seconds since the first slice', domain: [0, end] },
    columns,
    panels,
    title: (column) => {
      const at = columns[column] ?? 0;
      return `${seconds(at)}${at < warm ? ', warm-up' : ''}`;
    },
    // Of the two columns of a point the first.
    told: points.flatMap((point, column) => (point !== null && points[column - 1] !== point ? [column] : [])),
    zooms: true,
    notes: all.filter(isNothing).map(({ shown }) => shown.none ?? ''),
  };
}

function lineOf(variant: number, unit: Unit, { name, values, kind }: Track, points: readonly (number | null)[]): Line {
  const valueAt = (column: number): number | null => values[points[column] ?? -1] ?? null;
  const tell = (column: number) => ({ value: valueAt(column), text: figure(unit, valueAt(column)) });
  const line: Line = { variant, name, heights: points.map((_, column) => valueAt(column)), marked: [], tell };
  return kind === undefined ? line : { ...line, kind };
}

/**
 * A column at the begin and one at the end of each point, because it is level for as long as it lasted: what lies between two is not
 * made up. Where nothing was measured between two lies a column of no point, so that a gap stays a gap.
 */
export function stepsOf({ at_s: at, lasts_s: lasts }: Pick<TimeLine, 'at_s' | 'lasts_s'>): { columns: number[]; points: (number | null)[] } {
  const [columns, points]: [number[], (number | null)[]] = [[], []];
  at.forEach((from, point) => {
    const before = columns.at(-1);
    // Slices follow each other with a breath in between that no reader would call a gap.
    if (before !== undefined && from - before > 0.25 * Math.max(lasts[point] ?? 0, lasts[point - 1] ?? 0)) {
      columns.push((before + from) / 2);
      points.push(null);
    }
    columns.push(Math.max(from, before ?? from), from + (lasts[point] ?? 0));
    points.push(point, point);
  });
  return { columns, points };
}
