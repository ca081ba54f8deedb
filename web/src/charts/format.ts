// Numbers as people read them, by the same rules as the other forms of the report: as many digits as they deserve, and a
// unit. Must not know of axes or the page.

import type { Ratio, Unit } from '../model';

/** Thousands set apart: `134,054`. */
export function grouped(value: number, decimals = 0): string {
  const [whole = '', part] = Math.abs(value).toFixed(decimals).split('.');
  const apart = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  const digits = part === undefined ? apart : `${apart}.${part}`;
  return value < 0 && /[1-9]/.test(digits) ? `−${digits}` : digits;
}

/** Three significant digits: `0.123`, `12.3`, `1,230`. Beyond the third they are noise on any real machine. */
export function threeDigits(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size < 100) {
    // What lies below a thousandth would read as nothing.
    const decimals = size < 0.001 ? Math.min(9, 2 - Math.floor(Math.log10(size))) : size < 1 ? 3 : size < 10 ? 2 : 1;
    return grouped(value, decimals);
  }
  const step = 10 ** Math.max(0, Math.floor(Math.log10(size)) - 2);
  return grouped(Math.round(value / step) * step);
}

/** What one step of a unit is in the model's own, and its name. */
export interface Scaled {
  factor: number;
  name: string;
}

const TIMES: readonly Scaled[] = [
  { factor: 1, name: 'µs' },
  { factor: 1e3, name: 'ms' },
  { factor: 1e6, name: 's' },
];
const BYTES: readonly Scaled[] = [
  { factor: 1, name: 'B' },
  { factor: 1e3, name: 'kB' },
  { factor: 1e6, name: 'MB' },
  { factor: 1e9, name: 'GB' },
];
const RATES: readonly Scaled[] = [
  { factor: 1, name: '/s' },
  { factor: 1e6, name: 'million/s' },
];

/** The largest of the units in which `value` is `least` or more; else the smallest. */
function largest(units: readonly Scaled[], value: number, least: number): Scaled {
  const fitting = units.filter((unit) => Math.abs(value) / unit.factor >= least);
  return fitting[fitting.length - 1] ?? (units[0] as Scaled);
}

/** The unit that reads best for a figure of this size, `least` being the smallest figure worth a larger unit. */
export function scaled(unit: Unit, value: number, least = 1): Scaled {
  switch (unit) {
    case 'microseconds':
      return largest(TIMES, value, least);
    case 'bytes':
      return largest(BYTES, value, least);
    case 'per_second':
      return largest(RATES, value, 10);
    case 'share':
      return { factor: 0.01, name: '%' };
    case 'cores':
      return { factor: 1, name: 'cores' };
    case 'count':
      return { factor: 1, name: '' };
  }
}

/** A figure that stands alone: `52,300/s`, `812 µs`, `134 MB`, `2.31 %`, `1.02 cores`. */
export function figure(unit: Unit, value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  // As in the other forms, times change units at 10,000 and not at 1,000, so that fewer tables mix them.
  const { factor, name } = scaled(unit, value, unit === 'microseconds' ? 10 : 1);
  if (unit === 'count') return grouped(value, Number.isInteger(value) ? 0 : 1);
  const shown = value / factor;
  // Whole bytes have no digits behind the point.
  const digits = unit === 'bytes' && factor === 1 ? grouped(shown) : threeDigits(shown);
  return name.startsWith('/') ? `${digits}${name}` : `${digits} ${name}`;
}

/** With its sign, a true minus, and no `−0`. */
export function withSign(value: number, decimals: number): string {
  const digits = Math.abs(value).toFixed(decimals);
  if (!/[1-9]/.test(digits)) return `±${digits}`;
  return `${value < 0 ? '−' : '+'}${digits}`;
}

/** Per cent of a share with its sign: `+3 %`. */
export function percent(share: number, decimals: number): string {
  return `${withSign(share * 100, decimals)} %`;
}

/** A ratio of which nothing but its value is known: `+12.3 %`, `×4.12`. */
export function ratio(value: number): string {
  if (!Number.isFinite(value) || value <= 0) return '–';
  if (value < 0.5 || value > 2) return `×${threeDigits(value)}`;
  return percent(value - 1, Math.abs(value - 1) < 0.01 ? 2 : 1);
}

/** A ratio and its interval with the digits that the interval's width deserves: `+12 % (+9 % to +15 %)`. */
export function interval({ estimate, low, high }: Ratio): string {
  const width = high - low;
  if (!Number.isFinite(width)) return ratio(estimate);
  if (estimate < 0.5 || estimate > 2) {
    const decimals = Math.min(6, Math.max(0, 1 - Math.floor(Math.log10(width))));
    const factor = (value: number): string => `×${grouped(value, Number.isFinite(decimals) ? decimals : 2)}`;
    return `${factor(estimate)} (${factor(low)} to ${factor(high)})`;
  }
  const decimals = width >= 0.1 ? 0 : width >= 0.005 ? 1 : 2;
  const part = (value: number): string => percent(value - 1, decimals);
  return `${part(estimate)} (${part(low)} to ${part(high)})`;
}

/** A percentile's name: `50 %`, `99.9 %`, with the digits that tell it from 100 %. */
export function percentile(share: number): string {
  const decimals = share >= 1 ? 0 : Math.max(0, Math.ceil(-Math.log10(1 - share) - 2 - 1e-9));
  const digits = (share * 100).toFixed(Math.min(8, decimals + (decimals > 0 ? 1 : 0)));
  return `${digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits} %`;
}

/** Seconds since the begin of something: `12.5 s`. */
export function seconds(value: number): string {
  return `${grouped(value, value < 100 ? 1 : 0)} s`;
}
