// Numbers as the page writes them where the record has none ready to show: by the same rules as on the charts' axes. Pure.

import { grouped, scaled, threeDigits, type Scaled } from './charts/format';
import type { Unit } from './model';

/** A whole number with its thousands apart. */
export function count(value: number): string {
  return grouped(value);
}

/** `1 block`, `2 blocks`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** A share as per cent, without needless digits: `3 %`, `0.05 %`. */
export function share(value: number): string {
  return `${Number((value * 100).toPrecision(3))} %`;
}

/** A column of figures, which has one unit, chosen by the greatest of them. */
export class Column {
  readonly #unit: Scaled;

  constructor(unit: Unit, values: Iterable<number | null>) {
    let greatest = 0;
    for (const value of values) greatest = Math.max(greatest, value ?? 0);
    this.#unit = scaled(unit, greatest, unit === 'microseconds' ? 10 : 1);
  }

  /** A name for the column's head, with its unit. */
  head(name: string): string {
    return this.unit === '' ? name : `${name} (${this.unit})`;
  }

  get unit(): string {
    return this.#unit.name;
  }

  /** A figure without its unit, or a dash where there is none. */
  cell(value: number | null | undefined): string {
    return value === null || value === undefined ? '–' : threeDigits(value / this.#unit.factor);
  }
}

/** A moment as `2026-11-21 14:50 UTC`; what cannot be read as a moment stays as it is. */
export function moment(rfc3339: string): string {
  const time = new Date(rfc3339);
  return Number.isNaN(time.getTime()) ? rfc3339 : `${time.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
