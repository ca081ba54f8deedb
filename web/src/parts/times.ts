// How long requests took: whole distributions, what was given up included.

import { cumulativePlot, percentilePlot } from '../charts/index';
import { element, paragraph, section } from '../elements';
import type { LatencyCurve, LatencyCurves, PageData, Table } from '../model';
import { Column, count } from '../numbers';
import { pictureOf, type Picture } from '../picture';
import type { View } from '../view';
import { capital } from './blocks';

const SHARES = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];

export function timesOf(data: PageData, view: View): HTMLElement | null {
  const kinds = data.latencies.map((curves, index) => ({ curves, index })).filter(({ curves }) => requestsOf(curves) > 0);
  if (kinds.length === 0) return null;
  return section('times', 'Times of requests', ...kinds.flatMap(({ curves, index }) => partOf(data, view, curves, index)));
}

function requestsOf({ curves }: LatencyCurves): number {
  return curves.reduce((sum, { requests }) => sum + requests, 0);
}

function partOf(data: PageData, view: View, curves: LatencyCurves, index: number): HTMLElement[] {
  const table = (): Table => quantiles(data, curves);
  const censored = curves.curves.reduce((sum, one) => sum + one.censored, 0);
  const rests = `${count(requestsOf(curves))} requests of all variants`;
  const given = censored > 0 ? `, ${count(censored)} of them given up: these took at least as long as they were waited for` : '';
  const pictures: Picture[] = [
    { heading: `${capital(curves.kind)} by percentile`, notes: [`${rests}${given}.`], draw: () => percentilePlot(data, view, index), table },
    { heading: `${capital(curves.kind)}: share done within`, notes: [], draw: () => cumulativePlot(data, view, index), table },
  ];
  const note = curves.note === null ? [] : [paragraph(curves.note, 'note')];
  return [...note, element('div', { class: 'pictures' }, ...pictures.map(pictureOf))];
}

function quantiles(data: PageData, { curves }: LatencyCurves): Table {
  const column = new Column('microseconds', curves.map(({ points }) => points[Math.floor(points.length / 2)]?.[1] ?? null));
  const rows = curves.map((curve, variant) => [
    data.variants[variant]?.name ?? '',
    count(curve.requests),
    count(curve.censored),
    ...SHARES.map((share) => quantile(curve, share, column)),
  ]);
  const heads = SHARES.map((share) => column.head(`p${Number((share * 100).toFixed(2))}`));
  return { heading: '', columns: ['variant', 'requests', 'given up', ...heads], names: 1, rows };
}

/** The first point at or beyond a share, as a bound where it is no more than that; a dash where too few requests lie beyond. */
function quantile({ points, at_least_from: bound }: LatencyCurve, share: number, column: Column): string {
  const point = points.find(([at]) => at >= share - 1e-9);
  if (point === undefined) return '–';
  return `${bound !== null && share >= bound ? '≥ ' : ''}${column.cell(point[1])}`;
}
