// Tables of a record, ready to show: names at the left, figures at the right. Wide ones scroll by themselves, long ones fold.

import { element, type Child } from './elements';
import { filterOf } from './filter';
import type { Table } from './model';

const ROWS_AT_FIRST = 24;

/** What a table shows beside its cells. */
export interface Trimmings {
  /** Stands before the first name of a row. */
  mark?: (row: number) => Child;
  /** What the rows are, many of them. */
  called?: string;
  /** What a screen reader calls it, where no heading stands before it. */
  label?: string;
  /** Rows that stand there before the others are asked for. */
  first?: number;
}

/** A table, with what finds rows where they are many. */
export function tableOf(table: Table, trimmings: Trimmings = {}): HTMLElement {
  const rows = table.rows.map((cells, row) => rowOf(cells, table.names, trimmings.mark?.(row) ?? null));
  const heading = (name: string, column: number): HTMLElement =>
    element('th', { scope: 'col', class: column < table.names ? null : 'figure' }, name);
  const made = element('table', {}, element('thead', {}, element('tr', {}, ...table.columns.map(heading))), element('tbody', {}, ...rows));
  const label = trimmings.label ?? table.heading;
  const filter = filterOf({
    elements: rows,
    texts: table.rows.map((cells) => cells.slice(0, Math.max(1, table.names)).join(' ')),
    called: trimmings.called ?? 'rows',
    first: trimmings.first ?? ROWS_AT_FIRST,
  });
  return element('div', { class: 'table' }, filter?.host ?? null, scrolling(made, label));
}

function rowOf(cells: readonly string[], names: number, mark: Child): HTMLTableRowElement {
  const cell = (text: string, column: number): HTMLElement => {
    if (column > 0) return element('td', { class: column < names ? null : 'figure' }, text);
    return element('th', { scope: 'row' }, mark, text);
  };
  return element('tr', {}, ...cells.map(cell));
}

/** What may be wider than the page, in a box that scrolls. Only while it does scroll can the keyboard get there. */
export function scrolling(content: HTMLElement, label: string): HTMLElement {
  const box = element('div', { class: 'wide' }, content);
  const adapt = (): void => {
    if (box.scrollWidth > box.clientWidth + 1) {
      box.setAttribute('tabindex', '0');
      box.setAttribute('role', 'region');
      box.setAttribute('aria-label', `${label}, scrolls sideways`);
    } else {
      for (const name of ['tabindex', 'role', 'aria-label']) box.removeAttribute(name);
    }
  };
  new ResizeObserver(adapt).observe(box);
  return box;
}
