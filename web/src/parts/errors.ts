// What went wrong: by variant, where in a request's life, and how.

import { errorBars } from '../charts/index';
import { section } from '../elements';
import { swatch } from '../charts/index';
import type { PageData, Table } from '../model';
import { count, share } from '../numbers';
import { pictureOf } from '../picture';
import { tableOf } from '../table';
import type { View } from '../view';

export function errorsOf(data: PageData, view: View): HTMLElement | null {
  if (data.errors.length === 0) return null;
  const all = data.errors.reduce((sum, row) => sum + row.count, 0);
  const picture = pictureOf({
    heading: 'Failed requests by phase and cause',
    notes: [`${count(all)} in all.`],
    draw: () => errorBars(data, view),
    table: () => tableOfErrors(data),
  });
  const mark = (row: number): Element | null => swatch(data.errors[row]?.variant ?? 0);
  return section('errors', 'Errors', picture, tableOf(tableOfErrors(data), { mark, label: 'Errors', first: 12 }));
}

function tableOfErrors(data: PageData): Table {
  const rows = data.errors.map(({ variant, phase, cause, count: number, requests, example }) => [
    data.variants[variant]?.name ?? '',
    phase,
    example === null ? cause : `${cause}, such as ${example}`,
    `${count(number)} of ${count(requests)}`,
    requests > 0 ? share(number / requests) : '–',
  ]);
  return { heading: 'Errors', columns: ['variant', 'phase', 'cause', 'requests', 'share'], names: 3, rows };
}
