// Axes of figures: which stretch they show, where their ticks lie and what stands there. One unit an axis. Pure.

import { nice, ticks as niceTicks, tickStep } from 'd3-array';
import type { Unit } from '../model';
import { grouped, scaled } from './format';

/** A line across the chart, with or without words. */
export interface Tick {
  at: number;
  /** Empty where there is no room. */
  label: string;
}

/** An axis, ready to draw. */
export interface Axis {
  domain: [number, number];
  ticks: Tick[];
  /** Unit and kind, such as `ms, log scale`. */
  title: string;
  log: boolean;
  /** Whether a length on it may be read as an amount. */
  fromZero: boolean;
}

/** Smallest and largest of the figures that are figures; `null` where there are none. */
export function extent(values: Iterable<number | null | undefined>): [number, number] | null {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null || value === undefined || !Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : null;
}

const NAMES: Record<Unit, string> = {
  per_second: 'per second',
  microseconds: '',
  bytes: '',
  share: '',
  count: '',
  cores: '',
};

function unitName(unit: Unit, name: string): string {
  if (unit === 'per_second') return name === '/s' ? NAMES.per_second : 'million per second';
  return name;
}

function joined(parts: string[]): string {
  return parts.filter((part) => part !== '').join(', ');
}

/** Decimals that tell ticks of this step apart. */
function decimalsOf(step: number): number {
  return Math.min(9, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
}

/**
 * A linear axis about `about` ticks rich. From zero where asked, and where zero is so near that leaving it out would only
 * exaggerate. Its ends are ticks.
 */
export function linearAxis(unit: Unit, span: [number, number] | null, about: number, zero: boolean): Axis {
  let [low, high] = span ?? [0, 1];
  const fromZero = low >= 0 && (zero || low < 0.3 * high || high === 0);
  if (fromZero) low = 0;
  if (high === 0 && low === 0) high = scaled(unit, 1).factor;
  if (low === high) [low, high] = [low - Math.abs(low) * 0.02, high + Math.abs(high) * 0.02];
  return linearTicks(unit, nice(low, high, Math.max(2, about)), about, fromZero);
}

/** The same with a stretch that is given, as when the reader has zoomed. */
export function linearTicks(unit: Unit, domain: [number, number], about: number, fromZero: boolean): Axis {
  const { factor, name } = scaled(unit, Math.max(Math.abs(domain[0]), Math.abs(domain[1])));
  const count = Math.max(2, about);
  const low = domain[0] / factor;
  const high = domain[1] / factor;
  const decimals = decimalsOf(tickStep(low, high, count));
  const ticks = niceTicks(low, high, count).map((at) => ({ at: at * factor, label: grouped(at, decimals) }));
  return { domain, ticks, title: unitName(unit, name), log: false, fromZero };
}

/** Positive figures that a log axis can show. */
export function positive(values: Iterable<number | null | undefined>): [number, number] | null {
  const kept: number[] = [];
  for (const value of values) if (value !== null && value !== undefined && value > 0) kept.push(value);
  return extent(kept);
}

/** A log axis with at most about `about` words on it; each decade and, where there is room, 2 and 5 within it. */
export function logAxis(unit: Unit, span: [number, number] | null, about: number): Axis {
  let [low, high] = span ?? [1, 10];
  if (high / low < 1.02) [low, high] = [low / 1.02, high * 1.02];
  // A little air, so that no line runs on the frame.
  const air = (high / low) ** 0.03;
  return logTicks(unit, [low / air, high * air], about);
}

/** The same with a stretch that is given. */
export function logTicks(unit: Unit, domain: [number, number], about: number): Axis {
  const [low, high] = domain;
  const title = (name: string): string => joined([unitName(unit, name), 'log scale']);
  // The unit of the middle: 0.05 ms to 2,000 ms reads better than 50 µs to 2,000,000 µs.
  const { factor, name } = scaled(unit, Math.sqrt(low * high) * 3);
  if (high / low < 8) {
    const step = tickStep(low / factor, high / factor, Math.max(2, about));
    const at = niceTicks(low / factor, high / factor, Math.max(2, about));
    const ticks = at.map((value) => ({ at: value * factor, label: grouped(value, decimalsOf(step)) }));
    return { domain, ticks, title: title(name), log: true, fromZero: false };
  }
  const ticks = decadeTicks(low / factor, high / factor, about).map((value) => ({
    at: value.at * factor,
    label: value.label ? grouped(value.at, decimalsOf(value.at)) : '',
  }));
  return { domain, ticks, title: title(name), log: true, fromZero: false };
}

/** 1, 2 and 5 of each decade, or 1 and 3; words at all of them, at the decades, or at each second, third … one, as room allows. */
export function decadeTicks(low: number, high: number, about: number): { at: number; label: boolean }[] {
  const first = Math.floor(Math.log10(low) - 1e-9);
  const last = Math.ceil(Math.log10(high) + 1e-9);
  const decades = Math.log10(high / low);
  const every = Math.max(1, Math.ceil(decades / Math.max(1, about)));
  // The closest two of 1, 2 and 5 are 0.3 of a decade apart, of 1 and 3 almost half.
  const digits = decades * 3 <= about ? [1, 2, 5] : decades * 2.1 <= about ? [1, 3] : [1];
  const ticks: { at: number; label: boolean }[] = [];
  for (let power = first; power <= last; power += 1) {
    for (const digit of digits.length > 1 || every > 1 ? digits : [1, 2, 5]) {
      const at = Number(`${digit}e${power}`);
      const label = digits.includes(digit) && (((power % every) + every) % every) === 0;
      if (at >= low * (1 - 1e-9) && at <= high * (1 + 1e-9)) ticks.push({ at, label });
    }
  }
  return ticks;
}

/** An axis of whole numbers, such as blocks; never a tick between two. */
export function wholeAxis(domain: [number, number], about: number): Axis {
  const step = Math.max(1, tickStep(domain[0], domain[1], Math.max(2, about)));
  const ticks: Tick[] = [];
  for (let at = Math.ceil(domain[0] / step) * step; at <= domain[1]; at += step) {
    if (Number.isInteger(at)) ticks.push({ at, label: grouped(at) });
  }
  return { domain, ticks, title: '', log: false, fromZero: false };
}
