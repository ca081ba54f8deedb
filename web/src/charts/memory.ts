// Peak memory by variant: each trial a mark, and their median as a line. From zero, so that a length is an amount.

import { median } from 'd3-array';
import { scaleLinear } from 'd3-scale';
import type { BlockSeries, PageData } from '../model';
import type { View } from '../view';
import { extent, linearAxis } from './axis';
import { rowName, rowsAxis, rowsLayout, rowsRoom } from './bars';
import { hasFigures, laneOf } from './blocks';
import { line, svg } from './drawing';
import { ALL_HIDDEN, empty } from './empty';
import { figure } from './format';
import { framed, type Scene } from './frame';
import { shownOf, type Shown } from './lanes';
import { markAt } from './marks';
import { look } from './palette';
import { widthOf } from './words';

/** A variant's trials that count. */
export interface MemoryRow extends Shown {
  trials: { block: number; bytes: number }[];
  median: number;
}

/** The first series in bytes is peak memory. */
export function memoryOf(data: PageData): BlockSeries | undefined {
  return data.series.find(({ metric }) => metric === 'peak memory') ?? data.series.find(({ unit }) => unit === 'bytes');
}

/** Rows of the variants that are shown; dropped blocks do not count. */
export function memoryRows(data: PageData, view: View): MemoryRow[] {
  const series = memoryOf(data);
  if (series === undefined) return [];
  return shownOf(data, view, (variant) => hasFigures(series, variant)).flatMap((shown) => {
    const trials = laneOf(series, shown.variant).counted.flatMap(([block, bytes]) => (bytes === null ? [] : [{ block, bytes }]));
    const middle = median(trials, ({ bytes }) => bytes);
    return middle === undefined ? [] : [{ ...shown, trials, median: middle }];
  });
}

export function memoryPlot(data: PageData, view: View): HTMLElement {
  return framed(view, {
    label: 'Peak memory of each variant',
    summary: () => `${memoryRows(data, view).slice(0, 6).map(({ name, median, trials }) => `${name}: median ${figure('bytes', median)} of ${trials.length}`).join('; ')}.`,
    zooms: false,
    draw: ({ width }) => {
      const rows = memoryRows(data, view);
      return rows.length === 0 ? empty(width, memoryOf(data) ? ALL_HIDDEN : 'This record has no memory figures.') : drawn(rows, width);
    },
  });
}

function drawn(rows: readonly MemoryRow[], width: number): Scene {
  const told = Math.max(...rows.map(({ median }) => widthOf(figure('bytes', median), 13))) + 16;
  const layout = rowsLayout(rows.map(({ name }) => name), width, told);
  const axis = linearAxis('bytes', extent(rows.flatMap(({ trials }) => trials.map(({ bytes }) => bytes))), rowsRoom(layout), true);
  const x = scaleLinear(axis.domain, [layout.left, layout.left + layout.width]);
  const bottom = rows.length * layout.row + 4;
  const content: SVGElement[] = [rowsAxis(axis, x, 0, bottom, layout, layout.wide ? 'each mark a trial, the line their median' : 'trials, and their median')];
  rows.forEach((row, index) => {
    const top = index * layout.row;
    const middle = top + layout.middle;
    const group = svg('g', { class: `series-${look(row.variant).hue}` });
    for (const { bytes } of distinct(row.trials, x)) group.append(markAt(row.variant, x(bytes), middle, 28, 'mark one-trial'));
    group.append(line(x(row.median), middle - 9, x(row.median), middle + 9, 'median'));
    const words = svg('text', { x: layout.left + layout.width + 12, y: middle + 4.5, class: 'row-figure' }, figure('bytes', row.median));
    content.push(markAt(row.variant, 8, top + (layout.wide ? 12 : 8.5), 36), rowName(row.name, top, layout, 20), group, words);
  });
  const box = { left: layout.left, top: 0, width: layout.width, height: bottom };
  return { height: bottom + 44, content, box, readings: readingsOf(rows, layout.row, layout.middle, x) };
}

/** One of those trials whose marks would cover each other to the pixel. */
function distinct(trials: MemoryRow['trials'], x: (value: number) => number): MemoryRow['trials'] {
  return [...new Map(trials.map((trial) => [Math.round(x(trial.bytes) * 2), trial])).values()];
}

function readingsOf(rows: readonly MemoryRow[], high: number, middle: number, x: (value: number) => number): Scene['readings'] {
  return {
    columns: rows.length,
    lanes: 1,
    upright: true,
    nearest: (_x, y) => ({ column: Math.min(rows.length - 1, Math.max(0, Math.floor(y / high))), lane: 0 }),
    tell: ({ column }) => {
      const row = rows[column] as MemoryRow;
      const [low, most] = extent(row.trials.map(({ bytes }) => bytes)) ?? [0, 0];
      const lines = [`median ${figure('bytes', row.median)}`, `from ${figure('bytes', low)} to ${figure('bytes', most)}`, `${row.trials.length} trials`];
      const text = lines.join(', ');
      return { x: x(row.median), y: column * high + middle, title: row.name, lines: lines.map((one) => ({ text: one })), spoken: `${row.name}: ${text}` };
    },
  };
}
