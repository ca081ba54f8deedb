// What was measured block by block, for who wants to see how steady it was: ratios, metrics, memory, and what went wrong.

import { CellAxis, ratioDomain } from '../cells';
import type { Chart, Line, Shade } from '../chart';
import { element, section } from '../elements';
import { look, swatch } from '../looks';
import type { BlockSeries, PageData, PageVerdict } from '../model';
import { capital, Column, counted, figure, grouped, linearTicks, logTicks, ratio, ratioTicks, share } from '../numbers';
import { behind, Chooser, figuresOf, pictureOf } from '../pictures';
import { tableOf } from '../tables';
import type { View } from '../view';

export function blocksOf(data: PageData, view: View): HTMLElement | null {
  const ratios = ratiosOf(data, view);
  // Memory has a part of its own. One block shows no course, and a metric without values is an empty picture.
  const isDrawn = ({ unit, blocks, values }: BlockSeries): boolean => unit !== 'bytes' && blocks.length > 1 && values.flat().some((value) => value !== null);
  const series = data.series.filter(isDrawn).map((one) =>
    pictureOf({
      heading: capital(one.metric),
      notes: [blocksIn(one)],
      chart: (zero) => seriesChart(data, one, zero),
      toggle: { text: 'From zero', on: false },
      view,
    }),
  );
  if (ratios === null && series.length === 0) return null;
  return section('blocks', 'Block by block', ratios, element('div', { class: 'pictures' }, ...series));
}

/** The ratio of each block, for one verdict at a time: of the two that are compared, once two are. */
function ratiosOf(data: PageData, view: View): HTMLElement | null {
  const judged = data.verdicts.filter(({ blocks }) => blocks.length > 0);
  if (judged.length === 0) return null;
  const pictures = judged.map((verdict) => ({
    heading: `Ratio in each block: ${verdict.metric}`,
    notes: [`${verdict.comparison}, ${counted(verdict.blocks.length, 'block')}.`],
    chart: () => ratioChart(verdict, data.margin),
  }));
  const chooser = new Chooser('Comparison', pictures, judged.map(({ comparison, metric }) => `${comparison}, ${metric}`));
  view.follow(() => {
    const { pair } = view;
    if (pair !== null) chooser.show(judged.findIndex(({ baseline, candidate }) => pair.includes(baseline) && pair.includes(candidate)));
  });
  return chooser.host;
}

/** Shows drift, and what the interval is made of. */
function ratioChart({ metric, comparison, candidate, blocks, ratio: all, word, detail, more_is_better: more }: PageVerdict, margin: number): Chart {
  const across = (from: number, to: number, ink: string, strength = 1): Shade => ({ axis: 'y', from, to, ink, strength });
  const { ink } = look(candidate);
  const shades = [
    ...(margin > 0 ? [across(1 / (1 + margin), 1 + margin, '--plot-margin')] : []),
    ...(all === null ? [] : [across(all.low, all.high, ink, 0.22), across(all.estimate, all.estimate, ink)]),
    across(1, 1, '--text'),
  ];
  const tell = (column: number) => ({ value: blocks[column] ?? null, text: ratio(blocks[column] ?? NaN) });
  const name = `${comparison}: ${metric}, ${more ? 'better ↑' : 'better ↓'}`;
  const axis = { name, log: true, domain: ratioDomain([...blocks, all], margin), ticks: logTicks, labels: ratioTicks };
  const notes = [
    'The band in colour is the interval over all blocks, its line the estimate.',
    margin > 0 ? 'The grey band is the margin: differences inside of it do not matter here.' : '',
  ];
  return {
    label: `${metric} of ${comparison}: ratio of each block`,
    summary: () => `${counted(blocks.length, 'block')}. ${word}: ${detail}.`,
    axis: { name: 'blocks that count, in their order', ticks: wholeTicks },
    columns: blocks.map((_, index) => index + 1),
    air: 0.6,
    panels: [{ axis, height: 230, lines: [{ variant: candidate, name: 'ratio', heights: blocks, tell }], shades }],
    title: (column) => `block ${column + 1} of those that count`,
    zooms: true,
    notes: [notes.join(' ').trim()],
  };
}

/** Never a tick between two blocks. */
export function wholeTicks(low: number, high: number, about: number): number[] {
  return linearTicks(low, high, about * 1.5).filter(Number.isInteger);
}

/** A metric of each variant: shows drift, outliers, and whether the blocks agree. */
function seriesChart({ variants }: PageData, series: BlockSeries, zero: boolean): Chart {
  const { metric, unit, blocks, dropped } = series;
  const lines = variants.flatMap(({ name }, variant) => linesOf(series, variant, name));
  const shades = dropped.map(({ block }) => ({ axis: 'x', from: block - 0.5, to: block + 0.5, ink: '--edge', strength: 0.3 }) as const);
  return {
    label: `${metric} block by block`,
    summary: () => blocksIn(series),
    axis: { name: 'block', ticks: wholeTicks },
    columns: blocks,
    air: 0.6,
    panels: [{ axis: { name: metric, unit, zero }, height: 270, lines, shades }],
    title: (column) => {
      const why = whyDropped(series, column);
      return `block ${blocks[column]}${why === undefined ? '' : `, dropped: ${why}`}`;
    },
    zooms: true,
    notes: dropped.length > 0 ? ['Shaded blocks were dropped and count for nothing.'] : [],
  };
}

/** Why a block counts for nothing; `undefined` of one that counts. */
function whyDropped({ blocks, dropped }: BlockSeries, column: number): string | undefined {
  return dropped.find(({ block }) => block === blocks[column])?.why;
}

/** A variant's blocks that count, and as marks apart those that were dropped: the line goes on behind them. */
export function linesOf(series: BlockSeries, variant: number, name: string): Line[] {
  const values = series.values[variant] ?? [];
  if (values.every((value) => value === null)) return [];
  const out = (column: number): boolean => whyDropped(series, column) !== undefined;
  const tell = (column: number) => ({ value: values[column] ?? null, text: figure(series.unit, values[column]) });
  const line: Line = { variant, name, tell, heights: values.map((value, column) => (out(column) ? undefined : value)) };
  const apart: Line = { variant, name, kind: 'marks', heights: values.map((value, column) => (out(column) ? value : undefined)) };
  return series.dropped.length > 0 ? [line, apart] : [line];
}

function blocksIn({ blocks, dropped }: BlockSeries): string {
  const more = dropped.length === 0 ? '' : `; ${counted(dropped.length, 'more was', 'more were')} dropped`;
  return `${counted(blocks.length - dropped.length, 'block')}${more}.`;
}

/** The most memory of each trial. */
export function memoryOf(data: PageData): HTMLElement | null {
  const series = data.series.find(({ unit, blocks }) => unit === 'bytes' && blocks.length > 0);
  if (series === undefined) return null;
  const rows = memoryRows(data, series);
  const column = new Column('bytes', rows.map(({ values }) => values.at(-1) ?? 0));
  const axis = CellAxis.ofAmounts('bytes', rows.map(({ values }) => values.at(-1) ?? 0));
  const table = {
    heading: 'Peak memory',
    columns: ['variant', ...['median', 'least', 'most'].map((name) => column.head(name)), 'trials'],
    names: 1,
    rows: rows.map(({ name, values, median }) => [name, ...[median, values[0], values.at(-1)].map((value) => column.cell(value)), grouped(values.length)]),
  };
  const cells = rows.map(({ values, median, variant }) => axis.dots(values, median, look(variant).ink));
  const drawn = { head: 'trials, and their median', cells, foot: axis.foot() };
  const note = element('p', { class: 'note' }, `Peak memory of all processes of the services together, the most of a trial; ${blocksIn(series)}`);
  const made = tableOf(table, { mark: (row) => swatch(rows[row]?.variant ?? 0), drawn, called: 'variants', first: 12 });
  return section('memory', 'Memory', made, note, behind('Peak memory block by block', () => figuresOf(seriesChart(data, series, false))));
}

/** The trials that count of variants that have some, in rising order. */
export function memoryRows({ variants }: Pick<PageData, 'variants'>, series: BlockSeries) {
  return variants.flatMap(({ name }, variant) => {
    const values = (series.values[variant] ?? []).filter((value, column): value is number => value !== null && whyDropped(series, column) === undefined);
    values.sort((one, other) => one - other);
    const [low = 0, high = 0] = [values[Math.floor((values.length - 1) / 2)], values[Math.floor(values.length / 2)]];
    return values.length === 0 ? [] : [{ variant, name, values, median: (low + high) / 2 }];
  });
}

/** What went wrong: by variant, where in a request's life, and how. */
export function errorsOf({ errors, variants }: PageData): HTMLElement | null {
  if (errors.length === 0) return null;
  const shareOf = ({ count, requests }: (typeof errors)[number]): number => (requests > 0 ? count / requests : 0);
  const axis = CellAxis.ofAmounts('share', errors.map(shareOf));
  const rows = errors.map((row) => [
    variants[row.variant]?.name ?? '',
    row.phase,
    row.example === null ? row.cause : `${row.cause}, such as ${row.example}`,
    `${grouped(row.count)} of ${grouped(row.requests)}`,
    row.requests > 0 ? share(shareOf(row)) : '–',
  ]);
  const cells = errors.map((row) => axis.bar(shareOf(row), look(row.variant).ink));
  const table = { heading: 'Errors', columns: ['variant', 'phase', 'cause', 'requests', 'share'], names: 3, rows };
  const drawn = { head: 'share of requests', cells, foot: axis.foot() };
  const all = errors.reduce((sum, { count }) => sum + count, 0);
  const mark = (row: number): Element => swatch(errors[row]?.variant ?? 0);
  return section('errors', 'Errors', element('p', { class: 'note' }, `${grouped(all)} in all.`), tableOf(table, { mark, drawn, first: 12 }));
}
