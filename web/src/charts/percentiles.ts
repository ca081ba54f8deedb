// Distributions of times: the axis that gives the tail its room, and which part of a curve is only a lower bound. Pure.

import { bisector } from 'd3-array';
import type { LatencyCurve } from '../model';
import type { Tick } from './axis';
import { percentile } from './format';

/** Where a share lies: each nine more is one further to the right. 0 is 0, 90 % is 1, 99 % is 2. */
export function nines(share: number): number {
  return -Math.log10(1 - Math.min(Math.max(share, 0), 1 - 1e-12));
}

/** Ticks from `low` to `high` nines. Where words would touch, the nines keep theirs first, then the median, then the rest. */
export function ninesTicks(low: number, high: number, about: number): Tick[] {
  const whole: number[] = [];
  for (let k = 1; k <= Math.ceil(high); k += 1) whole.push(1 - 10 ** -k);
  const between = high - low < 0.5 * about ? [0.75, 0.95, 0.25, 0.98, 0.995] : [0.75, 0.95];
  const least = ((high - low) / about) * 0.8;
  const named: number[] = [];
  const ticks = [...whole, 0.5, 0, ...between].map((share) => {
    const at = nines(share);
    const free = at >= low - 1e-9 && at <= high + 1e-9 && named.every((other) => Math.abs(other - at) >= least);
    if (free) named.push(at);
    return { at, label: free ? percentile(share) : '' };
  });
  return ticks.filter(({ at }) => at >= low - 1e-9 && at <= high + 1e-9).sort((one, other) => one.at - other.at);
}

/** A curve in its two parts. They share a point, so that no hole lies between. */
export interface Parts {
  known: [number, number][];
  /** Times here are at least so long. */
  atLeast: [number, number][];
}

/** Cuts a curve at the share from which values are lower bounds. */
export function parts(curve: LatencyCurve): Parts {
  const { points, at_least_from: from } = curve;
  if (from === null || from === undefined) return { known: points, atLeast: [] };
  const cut = points.findIndex(([share]) => share >= from);
  if (cut < 0) return { known: points, atLeast: [] };
  return { known: points.slice(0, cut), atLeast: points.slice(Math.max(0, cut - 1)) };
}

const byShare = bisector((point: readonly [number, number]) => point[0]);

/** The first point at or beyond the share: none is made up between two. */
export function pointAt(curve: LatencyCurve, share: number): [number, number] | undefined {
  return curve.points[byShare.left(curve.points, share - 1e-9)];
}

/** The time within which this share was done; `null` beyond the last point. */
export function timeAt(curve: LatencyCurve, share: number): { us: number; atLeast: boolean } | null {
  const point = pointAt(curve, share);
  if (point === undefined) return null;
  const from = curve.at_least_from;
  return { us: point[1], atLeast: from !== null && from !== undefined && point[0] >= from };
}

/** Shares that a table and the arrow keys stop at, as far as any curve reaches. */
export function stops(curves: readonly LatencyCurve[]): number[] {
  const last = Math.max(0, ...curves.map((curve) => curve.points[curve.points.length - 1]?.[0] ?? 0));
  const all = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99999, 0.999999];
  const kept = all.filter((share) => share <= last + 1e-9);
  const end = kept[kept.length - 1] ?? 0;
  return last > 0 && nines(last) - nines(end) > 0.15 ? [...kept, last] : kept;
}

/** The share of requests done within a time; of those that were given up nobody knows, so that it is then at most this. */
export function shareAt(curve: LatencyCurve, us: number): { share: number; atMost: boolean } {
  let share = 0;
  for (const [at, time] of curve.points) {
    if (time > us) break;
    share = at;
  }
  const from = curve.at_least_from;
  return { share, atMost: from !== null && from !== undefined && share >= from };
}

/** Round times within a stretch, for the arrow keys to stop at. */
export function timesToStop(low: number, high: number): number[] {
  const times: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const digits of [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8]) {
      const at = Number(`${digits}e${power}`);
      if (at >= low && at <= high) times.push(at);
    }
  }
  return times;
}
