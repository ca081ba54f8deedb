// The axis of ratios: logarithmic, because ×2 and ×0.5 are the same distance from no difference. Pure.

import { tickStep } from 'd3-array';
import type { Ratio } from '../model';
import type { Axis, Tick } from './axis';
import { grouped, percent, threeDigits } from './format';

/** Differences that do not matter: the same distance both ways on the log scale, as the verdicts are judged. */
export function marginBand(margin: number): [number, number] | null {
  return margin > 0 ? [1 / (1 + margin), 1 + margin] : null;
}

/** Whether a ratio can stand on the axis at all. */
export function shows(value: number | null | undefined): value is number {
  return value !== null && value !== undefined && Number.isFinite(value) && value > 0;
}

/** All that must be on the axis: every estimate and end of an interval that is a number, no difference, and the margin. */
export function ratioDomain(ratios: Iterable<Ratio | number | null>, margin: number): [number, number] {
  let far = Math.max(marginBand(margin)?.[1] ?? 1, 1.005);
  let [low, high] = [1 / far, far];
  for (const ratio of ratios) {
    const values = ratio === null ? [] : typeof ratio === 'number' ? [ratio] : [ratio.low, ratio.estimate, ratio.high];
    for (const value of values.filter(shows)) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  far = (high / low) ** 0.06;
  return [low / far, high * far];
}

/** Per cent while all is near 1, factors beyond. At most about `about` words. */
export function ratioAxis(domain: [number, number], about: number): Axis {
  const [low, high] = domain;
  const near = low >= 0.45 && high <= 2.2;
  const ticks = near ? percentTicks(low, high, about) : factorTicks(low, high, about);
  return { domain, ticks, title: 'log scale', log: true, fromZero: false };
}

/** Ticks lie evenly in per cent; on a log axis those below 1 stand a little further apart. */
function percentTicks(low: number, high: number, about: number): Tick[] {
  const step = stepFor(low, high, about);
  const decimals = Math.max(0, -Math.floor(Math.log10(step * 100) + 1e-9));
  const ticks: Tick[] = [];
  for (let k = Math.ceil((low - 1) / step); 1 + k * step <= high; k += 1) {
    ticks.push({ at: 1 + k * step, label: k === 0 ? 'no change' : percent(k * step, decimals) });
  }
  return ticks;
}

/** The smallest round step whose ticks have room at the upper end, where a log axis has the least; but one that steps off 1. */
function stepFor(low: number, high: number, about: number): number {
  const room = (0.8 * Math.log(high / low)) / about;
  let kept = tickStep(low - 1, high - 1, about + 2);
  for (let count = about + 1; count >= 1 && Math.log(high / (high - kept)) < room; count -= 1) {
    const step = tickStep(low - 1, high - 1, count);
    // No change alone tells nothing of the scale.
    if (step >= Math.max(1 - low, high - 1)) break;
    kept = step;
  }
  return kept;
}

/** Multiples of the densest row that has room: halves and doubles, 1-2-5, decades, or every so many decades. */
function factorTicks(low: number, high: number, about: number): Tick[] {
  const span = Math.log(high / low);
  const room = span / Math.max(2, about);
  if (room <= Math.log(1.25)) return stepped(low, high, about);
  if (room <= Math.LN2) return powers(low, high, 2);
  if (room <= Math.log(4)) return powers(low, high, 4);
  return powers(low, high, 10 ** Math.max(1, Math.ceil(room / Math.LN10)));
}

function stepped(low: number, high: number, about: number): Tick[] {
  const step = stepFor(low, high, about);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks: Tick[] = [];
  for (let k = Math.ceil(low / step); k * step <= high; k += 1) {
    const at = k * step;
    if (at > 0) ticks.push({ at, label: named(at, `×${grouped(at, decimals)}`) });
  }
  return ticks;
}

function powers(low: number, high: number, base: number): Tick[] {
  const ticks: Tick[] = [];
  const [first, last] = [low, high].map((end) => Math.log(end) / Math.log(base)) as [number, number];
  for (let power = Math.ceil(first - 1e-9); power <= last + 1e-9; power += 1) {
    const at = base ** power;
    ticks.push({ at, label: named(at, `×${at >= 1 ? grouped(at) : exact(at)}`) });
  }
  return ticks;
}

function named(at: number, label: string): string {
  return Math.abs(at - 1) < 1e-9 ? 'no change' : label;
}

/** Below one: `0.5`, `0.25`, `0.125` whole, smaller ones with three digits. */
function exact(value: number): string {
  return value >= 0.1 ? String(Number(value.toFixed(3))) : threeDigits(value).replace(/\.?0+$/, '');
}
