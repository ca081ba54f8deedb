// Numbers as people read them, by the same rules as the other forms of the report: as many digits as they deserve, and a unit.
// Pure.

import { scaleLinear, scaleLog } from 'd3-scale';
import type { Unit } from './model';

/** Thousands set apart and a true minus: `134,054`. */
export function grouped(value: number, decimals = 0): string {
  const format = { minimumFractionDigits: decimals, maximumFractionDigits: decimals, signDisplay: 'negative' } as const;
  return value.toLocaleString('en-US', format).replace('-', '−');
}

/** Three significant digits: `0.123`, `12.3`, `1,230`. Beyond the third they are noise on any real machine. */
export function threeDigits(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 99.95) return grouped(Number(value.toPrecision(3)));
  // What lies below a thousandth would read as nothing.
  const decimals = size < 0.001 ? Math.min(9, 2 - Math.floor(Math.log10(size))) : size < 0.9995 ? 3 : size < 9.995 ? 2 : 1;
  return grouped(value, decimals);
}

/** `1 block`, `2 blocks`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${grouped(value)} ${value === 1 ? one : many}`;
}

/** A share as per cent, without needless digits: `3 %`, `0.05 %`. What is not all is not `100 %`: `99.96 %`. */
export function share(value: number): string {
  const percent = Number((value * 100).toPrecision(3));
  return percent === 100 && value < 1 ? percentile(value) : `${percent} %`;
}

/** What one step of a unit is in the model's own, and its name. */
export interface Scaled {
  factor: number;
  name: string;
}

type Step = readonly [factor: number, name: string];

const STEPS: Record<Unit, readonly Step[]> = {
  us: [[1, 'µs'], [1e3, 'ms'], [1e6, 's']],
  bytes: [[1, 'B'], [1e3, 'kB'], [1e6, 'MB'], [1e9, 'GB']],
  per_s: [[1, '/s']],
  share: [[0.01, '%']],
  number: [[1, '']],
  ratio: [[1, '']],
  count: [[1, '']],
};

/** The largest unit in which a figure of this size is 1 or more; else the smallest. */
export function scaled(unit: Unit, value: number): Scaled {
  const steps = STEPS[unit];
  const [factor, name] = steps.findLast(([step]) => Math.abs(value) >= step) ?? (steps[0] as Step);
  return { factor, name };
}

/** A figure that stands alone: `52,300/s`, `812 µs`, `134 MB`, `2.31 %`, `1.02`. */
export function figure(unit: Unit, value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  if (unit === 'count') return grouped(value, Number.isInteger(value) ? 0 : 1);
  // By what it is with three digits, so that 999.7 µs are 1.00 ms.
  const { factor, name } = scaled(unit, Number(value.toPrecision(3)));
  // Whole bytes have no digits behind the point.
  const digits = name === 'B' ? grouped(value) : threeDigits(value / factor);
  return name.startsWith('/') ? `${digits}${name}` : `${digits} ${name}`.trim();
}

/** A column of figures, which has one unit, chosen by the greatest of them. */
export class Column {
  readonly #unit: Scaled;

  constructor(unit: Unit, values: Iterable<number | null>) {
    const greatest = Math.max(0, ...Array.from(values, (value) => value ?? 0));
    this.#unit = scaled(unit, greatest);
  }

  /** A name for the column's head, with its unit. */
  head(name: string): string {
    return this.#unit.name === '' ? name : `${name} (${this.#unit.name})`;
  }

  /** A figure without its unit, or a dash where there is none. */
  cell(value: number | null | undefined): string {
    return value === null || value === undefined ? '–' : threeDigits(value / this.#unit.factor);
  }
}

/** Per cent of a share with its sign and no `−0`: `+3 %`. */
function percent(value: number, decimals: number): string {
  const digits = Math.abs(value * 100).toFixed(decimals);
  return `${/[1-9]/.test(digits) ? (value < 0 ? '−' : '+') : '±'}${digits} %`;
}

/** A ratio of which nothing but its value is known: `+12.3 %`, `×4.12`. */
export function ratio(value: number): string {
  if (!Number.isFinite(value) || value <= 0) return '–';
  if (value < 0.5 || value > 2) return `×${threeDigits(value)}`;
  return percent(value - 1, Math.abs(value - 1) < 0.01 ? 2 : 1);
}

/** The place of an axis of ratios that all others are read from. */
export const NO_CHANGE = 'no change';

/** Places of an axis of ratios in words: per cent while all are near 1, factors beyond. */
export function ratioTicks(places: readonly number[]): string[] {
  const near = places.every((at) => at >= 0.45 && at <= 2.2);
  const text = (at: number): string => (near ? `${at > 1 ? '+' : '−'}${Number(Math.abs(at * 100 - 100).toFixed(6))} %` : `×${decimal([at])[0]}`);
  return places.map((at) => (Math.abs(at - 1) < 1e-9 ? NO_CHANGE : text(at)));
}

/** Figures with as many decimals as tell them apart, all with the same. */
export function decimal(values: readonly number[]): string[] {
  const decimals = values.map((value) => value.toFixed(9).replace(/\.?0+$/, '').split('.')[1]?.length ?? 0);
  return values.map((value) => grouped(value, Math.max(...decimals)));
}

/** Round places on an axis, about so many. */
export function linearTicks(low: number, high: number, about: number): number[] {
  return scaleLinear([low, high], [0, 1]).ticks(about);
}

/** Round places on a log axis, about so many: of each decade all, or 1, 2 and 5, or its begin; on a short axis evenly. */
export function logTicks(low: number, high: number, about: number): number[] {
  if (high / low < 5) return linearTicks(low, high, about);
  const all = scaleLog([low, high], [0, 1]).ticks(about);
  const first = (digits: string): number[] => all.filter((at) => digits.includes(at.toExponential(6).charAt(0)));
  return [all, first('125')].find(({ length }) => length <= about + 1) ?? first('1');
}

/** A percentile's name: `50 %`, `99.9 %`, with the digits that tell it from 100 %. */
export function percentile(value: number): string {
  const nines = value >= 1 ? 0 : Math.max(0, Math.ceil(-Math.log10(1 - value) - 2 - 1e-9));
  return `${Number((value * 100).toFixed(Math.min(8, nines + (nines > 0 ? 1 : 0))))} %`;
}

/** Seconds since the begin of something: `12.5 s`. */
export function seconds(value: number): string {
  return `${grouped(value, value < 100 ? 1 : 0)} s`;
}

/** A moment as `2026-11-21 14:50 UTC`; what cannot be read as a moment stays as it is. */
export function moment(rfc3339: string): string {
  const time = new Date(rfc3339);
  return Number.isNaN(time.getTime()) ? rfc3339 : `${time.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** With a capital letter, as a heading begins. */
export function capital(text: string): string {
  return text.replace(/^\p{Ll}/u, (first) => first.toUpperCase());
}
