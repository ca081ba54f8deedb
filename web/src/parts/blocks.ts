// What was measured block by block, for who wants to see how steady it was.

import { blockRatios, blockSeries, memoryPlot } from '../charts/index';
import { element, section } from '../elements';
import type { BlockSeries, PageData, Table, Verdict } from '../model';
import { Column, counted } from '../numbers';
import { ratio } from '../charts/format';
import { Chooser, pictureOf, type Picture } from '../picture';
import type { View } from '../view';

export function blocksOf(data: PageData, view: View): HTMLElement | null {
  const ratios = ratiosOf(data, view);
  // Memory has a part of its own.
  const series = data.series.flatMap((one, index) => (one.unit === 'bytes' ? [] : [pictureOf(seriesPicture(data, view, one, index))]));
  if (ratios === null && series.length === 0) return null;
  return section('blocks', 'Block by block', ratios, element('div', { class: 'pictures' }, ...series));
}

/** The ratio of each block, for one verdict at a time: of the two that are compared, once two are. */
function ratiosOf(data: PageData, view: View): HTMLElement | null {
  const judged = data.verdicts.map((verdict, index) => ({ verdict, index })).filter(({ verdict }) => verdict.blocks.length > 0);
  if (judged.length === 0) return null;
  const pictures = judged.map(({ verdict, index }): Picture => ({
    heading: `Ratio in each block: ${verdict.metric}`,
    notes: [`${verdict.comparison}, ${counted(verdict.blocks.length, 'block')}.`],
    draw: () => blockRatios(data, view, index),
    table: () => ratioTable(verdict),
  }));
  const chooser = new Chooser('Comparison', pictures, judged.map(({ verdict }) => `${verdict.comparison}, ${verdict.metric}`));
  view.onChange(() => {
    const { pair } = view;
    if (pair === null) return;
    chooser.show(judged.findIndex(({ verdict }) => pair.includes(verdict.baseline) && pair.includes(verdict.candidate)));
  });
  return chooser.host;
}

function ratioTable({ blocks }: Verdict): Table {
  const rows = blocks.map((one, index) => [String(index + 1), ratio(one)]);
  return { heading: '', columns: ['block that counts', 'difference'], names: 1, rows };
}

function seriesPicture(data: PageData, view: View, series: BlockSeries, index: number): Picture {
  const notes = [counted(series.blocks.length - series.dropped.length, 'block')];
  if (series.dropped.length > 0) notes.push(`${counted(series.dropped.length, 'more was', 'more were')} dropped, because the machine was not ours`);
  return {
    heading: capital(series.metric),
    notes: [`${notes.join('; ')}.`],
    draw: () => blockSeries(data, view, index),
    table: () => seriesTable(data, series),
  };
}

function seriesTable(data: PageData, series: BlockSeries): Table {
  const column = new Column(series.unit, series.values.flat());
  const rows = data.variants.map(({ name }, variant) => [name, ...series.blocks.map((_, block) => column.cell(series.values[variant]?.[block]))]);
  const dropped = new Set(series.dropped);
  const columns = series.blocks.map((block) => (dropped.has(block) ? `block ${block} (dropped)` : `block ${block}`));
  return { heading: '', columns: [column.head('variant'), ...columns], names: 1, rows };
}

/** The most memory of each trial. */
export function memoryOf(data: PageData, view: View): HTMLElement | null {
  const index = data.series.findIndex(({ unit }) => unit === 'bytes');
  const series = data.series[index];
  if (series === undefined) return null;
  const picture: Picture = {
    heading: 'Peak memory',
    notes: [`Of all processes of the services together, the most of a trial; ${counted(series.blocks.length - series.dropped.length, 'block')}.`],
    draw: () => memoryPlot(data, view),
    table: () => seriesTable(data, series),
  };
  return section('memory', 'Memory', pictureOf(picture));
}

export function capital(text: string): string {
  return text.replace(/^\p{Ll}/u, (first) => first.toUpperCase());
}
