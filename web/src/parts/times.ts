// How long requests took: whole distributions, those given up included. Where requests were given up, values are lower bounds, and
// their part of a curve is dotted.

import uPlot from 'uplot';
import type { Axis, Chart, Figure, Line } from '../chart';
import { element, paragraph, section } from '../elements';
import type { LatencyCurve, LatencyCurves, PageData, PageTable } from '../model';
import { capital, Column, counted, figure, grouped, percentile } from '../numbers';
import { pictureOf } from '../pictures';
import type { View } from '../view';

const SHARES = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];
/** Marks stand at these, so that lines are known without their colours. */
const MARKED = [0.5, 0.9, 0.99, 0.999, 0.9999];
const DOTTED = 'Where a line is dotted, requests were given up: the times there are at least what is shown.';
/** From this factor between the least median and the farthest tail on, a linear axis would flatten all but the tail. */
const LOG_FROM = 8;

export function timesOf(data: PageData, view: View): HTMLElement | null {
  const kinds = data.latencies.filter((curves) => requestsOf(curves) > 0);
  return kinds.length === 0 ? null : section('times', 'Latency distribution', ...kinds.flatMap((curves) => partOf(data, view, curves)));
}

function requestsOf({ curves }: LatencyCurves): number {
  return curves.reduce((sum, { requests }) => sum + requests, 0);
}

function partOf({ variants }: PageData, view: View, latency: LatencyCurves): HTMLElement[] {
  const names = variants.map(({ name }) => name);
  const table = (): PageTable => quantiles(names, latency);
  const censored = latency.curves.reduce((sum, one) => sum + one.censored, 0);
  const drawn = latency.curves.filter(({ requests }) => requests > 0).length;
  const given = censored > 0 ? `, ${grouped(censored)} of them given up: these took at least as long as they were waited for` : '';
  const kind = capital(latency.kind);
  const pictures = [
    {
      heading: `${kind} by percentile`,
      notes: [`${grouped(requestsOf(latency))} requests of ${counted(drawn, 'variant')}${given}.`],
      chart: (log: boolean) => byPercentile(names, latency, log),
      toggle: { text: 'Log scale of time', on: spreads(latency) },
      view,
      table,
    },
    { heading: `${kind}: share done within`, notes: [], chart: () => cumulative(names, latency), view, table },
  ];
  const note = latency.note === null ? [] : [paragraph(latency.note, 'note')];
  return [...note, element('div', { class: 'pictures' }, ...pictures.map(pictureOf))];
}

/** A row for each variant that has a curve: of many only the first have one. */
export function quantiles(names: readonly string[], { curves }: Pick<LatencyCurves, 'curves'>): PageTable {
  const column = new Column('us', curves.map((curve) => timeAt(curve, 0.5)?.us ?? null));
  const cell = (time: Time | null): string => (time === null ? '–' : `${time.atLeast ? '≥ ' : ''}${column.cell(time.us)}`);
  const rowOf = (curve: LatencyCurve, variant: number): string[] => [
    names[variant] ?? '',
    grouped(curve.requests),
    grouped(curve.censored),
    ...SHARES.map((share) => cell(timeAt(curve, share))),
  ];
  const rows = curves.flatMap((curve, variant) => (curve.requests > 0 ? [rowOf(curve, variant)] : []));
  const heads = SHARES.map((share) => column.head(`p${Number((share * 100).toFixed(2))}`));
  return { heading: '', columns: ['variant', 'requests', 'given up', ...heads], names: 1, rows };
}

interface Time {
  us: number;
  /** Whether it is a lower bound only. */
  atLeast: boolean;
}

/** The time within which this share was done: that of the first point at or beyond it, for none is made up; `null` beyond the last. */
export function timeAt({ points, at_least_from: bound }: LatencyCurve, share: number): Time | null {
  const point = points.find(([at]) => at >= share - 1e-9);
  return point === undefined ? null : { us: point[1], atLeast: bound !== null && point[0] >= bound };
}

/** The share of requests done within a time; of those that were given up nobody knows, so that it is then at most this. */
export function shareAt({ points, at_least_from: bound }: LatencyCurve, us: number): { share: number; atMost: boolean } {
  const share = points.findLast(([, time]) => time <= us)?.[0] ?? 0;
  return { share, atMost: bound !== null && share >= bound };
}

function spreads({ curves }: LatencyCurves): boolean {
  const there = curves.filter(({ points }) => points.length > 0);
  const ends = there.map(({ points }) => points.at(-1)?.[1] ?? 0);
  return Math.max(0, ...ends) > LOG_FROM * Math.min(...there.map((curve) => timeAt(curve, 0.5)?.us ?? 0));
}

/** What is its own of either picture of the curves. */
type Way = Pick<Chart, 'label' | 'axis'> & {
  /** Across and upwards, of a share and its time. */
  place: (share: number, us: number) => [number, number];
  tell: (curve: LatencyCurve, at: number) => Figure;
  title: (at: number) => string;
  upright: Axis;
};

function byPercentile(names: readonly string[], latency: LatencyCurves, log: boolean): Chart {
  const labels = (places: readonly number[]): string[] => places.map((place) => percentile(shareOf(place)));
  return curvesOf(names, latency, {
    label: `${latency.kind} by percentile`,
    axis: { name: 'share of requests, the tail widened (log scale)', ticks: ninesTicks, labels },
    place: (share, us) => [nines(share), us],
    tell: (curve, at) => timeFigure(timeAt(curve, shareOf(at))),
    title: (at) => `${percentile(shareOf(at))} of requests took at most`,
    upright: { name: latency.kind, unit: 'us', log, zero: true },
  });
}

function cumulative(names: readonly string[], latency: LatencyCurves): Chart {
  return curvesOf(names, latency, {
    label: `${latency.kind}, cumulative`,
    axis: { name: latency.kind, unit: 'us', log: true },
    place: (share, us) => [us, share],
    tell: (curve, us) => {
      const { share, atMost } = shareAt(curve, us);
      const digits = share > 0.99 && share < 1 ? percentile(share) : `${grouped(share * 100, 1)} %`;
      return { value: share, text: `${atMost ? 'at most ' : ''}${digits}` };
    },
    title: (us) => `done within ${figure('us', us)}`,
    upright: { name: 'requests done', unit: 'share', domain: [0, 1.02] },
  });
}

function timeFigure(time: Time | null): Figure {
  if (time === null) return { value: null, text: 'too few requests' };
  return { value: time.us, text: `${time.atLeast ? 'at least ' : ''}${figure('us', time.us)}` };
}

function curvesOf(names: readonly string[], { curves }: LatencyCurves, { place, tell, title, upright, ...chart }: Way): Chart {
  const drawn = curves.flatMap((curve, variant) => (curve.points.length > 0 ? [{ curve, variant, name: names[variant] ?? '', points: placed(curve, place) }] : []));
  const [columns = [], ...heights] = drawn.length === 0 ? [] : uPlot.join(drawn.map(({ points }) => points));
  const xs = [...columns] as number[];
  const lines = drawn.flatMap(({ curve, variant, name }, index): Line[] => {
    const [known, bounds] = [heights[index * 2], heights[index * 2 + 1]] as Line['heights'][];
    const line = { variant, name, heights: known ?? [], tell: (column: number) => tell(curve, xs[column] ?? 0), marked: markedOf(curve, place, xs) };
    return [line, { variant, name, heights: bounds ?? [], kind: 'dotted', marked: [] }];
  });
  const summary = drawn.slice(0, 4).map(({ curve, name }) => `${name}: median ${timeFigure(timeAt(curve, 0.5)).text}, 99 % ${timeFigure(timeAt(curve, 0.99)).text}`);
  return {
    ...chart,
    summary: () => `${summary.join('; ')}.`,
    columns: xs,
    panels: [{ axis: upright, height: 310, lines }],
    title: (column) => title(xs[column] ?? 0),
    zooms: true,
    notes: drawn.some(({ curve }) => curve.at_least_from !== null) ? [DOTTED] : [],
  };
}

function markedOf({ points }: LatencyCurve, place: Way['place'], columns: readonly number[]): number[] {
  const marked = MARKED.map((share) => points.find(([at]) => at >= share - 1e-9)).filter((point) => point !== undefined);
  return marked.map((point) => columns.indexOf(place(...point)[0])).filter((column) => column >= 0);
}

/** A curve's points as columns with two heights: what is known, and what is a lower bound; they share a point, so that no hole lies between. */
export function placed({ points, at_least_from: bound }: LatencyCurve, place: Way['place']): [number[], (number | null)[], (number | null)[]] {
  const cut = bound === null ? points.length : points.findIndex(([share]) => share >= bound);
  // Of several shares with one time the last counts; a time of 0 has no place on a log axis.
  const at = new Map(points.flatMap(([share, us], index) => (us > 0 ? [[place(share, us)[0], { height: place(share, us)[1], index }]] : [])));
  const part = (there: (index: number) => boolean): (number | null)[] => [...at.values()].map(({ height, index }) => (there(index) ? height : null));
  return [[...at.keys()], part((index) => index < cut), part((index) => index >= cut - 1 && cut < points.length)];
}

/** Where a share lies: each nine more is one further to the right. 0 is 0, 90 % is 1, 99 % is 2. */
export function nines(share: number): number {
  return -Math.log10(1 - Math.min(Math.max(share, 0), 1 - 1e-12));
}

function shareOf(nines: number): number {
  return Number((1 - 10 ** -nines).toPrecision(9));
}

/** Where words would touch, the nines keep theirs first, then the median, then the rest. */
export function ninesTicks(low: number, high: number, about: number): number[] {
  const whole = Array.from({ length: Math.ceil(high) }, (_, index) => index + 1);
  const kept: number[] = [];
  for (const at of [...whole, ...[0.5, 0, 0.75, 0.95, 0.25, 0.98, 0.995].map(nines)]) {
    if (at >= low && at <= high && kept.every((other) => Math.abs(other - at) >= ((high - low) / about) * 0.8)) kept.push(at);
  }
  return kept.sort((one, other) => one - other);
}
