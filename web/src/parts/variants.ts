// The variants' figures, and those of their parts: by service, by request.

import { element, fold, paragraph, section } from '../elements';
import { swatch } from '../charts/index';
import type { PageData } from '../model';
import { tableOf } from '../table';

export function variantsOf(data: PageData): HTMLElement | null {
  if (data.figures.rows.length === 0) return null;
  const mark = (row: number): Element => swatch(row);
  const parts = data.parts.map((part) => fold(part.heading, tableOf(part)));
  return section(
    'variants',
    'Figures of the variants',
    paragraph('Means over the blocks that count; what each rests on is below.', 'faint'),
    tableOf(data.figures, { mark, called: 'variants', label: 'Figures of the variants' }),
    parts.length > 0 ? element('div', { class: 'folds' }, ...parts) : null,
  );
}
