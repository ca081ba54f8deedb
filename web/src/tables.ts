// Tables and long lists. Wide tables scroll by themselves. Of long lists the first entries stand there, the others come at a
// button, and a box finds entries by their text; paper has all of them. It must not know what the entries are.

import { button, element, present, type Child } from './elements';
import type { PageTable } from './model';
import { grouped } from './numbers';

/** What a table shows beside its cells. */
export interface Trimmings {
  /** Stands before the first name of a row. */
  mark?: (row: number) => Child;
  /** A column after the names that is drawn, with what stands below it. */
  drawn?: { head: string; cells: readonly Child[]; foot: Child };
  /** What the rows are, many of them. */
  called?: string;
  /** What a screen reader calls it, where no heading stands before it. */
  label?: string;
  /** Rows that stand there before the others are asked for. */
  first?: number;
}

/** A table of a record: names at the left, figures at the right. */
export function tableOf(table: PageTable, trimmings: Trimmings = {}): HTMLElement {
  const { mark, drawn, called = 'rows', label = table.heading, first = 24 } = trimmings;
  const kind = (column: number): string | null => (column < table.names ? null : 'figure');
  const cell = (text: string, column: number, row: number): HTMLElement =>
    column > 0 ? element('td', { class: kind(column) }, text) : element('th', { scope: 'row' }, mark?.(row) ?? null, text);
  const rowOf = (cells: HTMLElement[], extra: HTMLElement | null): HTMLElement => element('tr', {}, ...cells.toSpliced(table.names, 0, ...present([extra])));
  const rows = table.rows.map((cells, row) =>
    rowOf(cells.map((text, column) => cell(text, column, row)), drawn ? element('td', { class: 'drawn' }, drawn.cells[row] ?? null) : null),
  );
  const heads = table.columns.map((name, column) => element('th', { scope: 'col', class: kind(column) }, name));
  const head = rowOf(heads, drawn ? element('th', { scope: 'col' }, drawn.head) : null);
  const foot = drawn ? footOf(table.names, drawn.foot, table.columns.length - table.names) : null;
  const made = element('table', {}, element('thead', {}, head), element('tbody', {}, ...rows), foot);
  const texts = table.rows.map((cells) => cells.slice(0, Math.max(1, table.names)).join(' '));
  const filter = filterOf({ elements: rows, texts, called, first });
  return element('div', { class: 'table' }, filter?.host ?? null, scrolling(made, label));
}

/** What stands below a column of a table, with so many columns before and after it. Whoever hears the rows needs none of it. */
export function footOf(before: number, foot: Child, after = 0): HTMLElement {
  const blank = (columns: number): Child => (columns > 0 ? element('td', { colspan: columns, class: 'blank' }) : null);
  return element('tfoot', { 'aria-hidden': 'true' }, element('tr', {}, blank(before), element('td', { class: 'drawn' }, foot), blank(after)));
}

/** What may be wider than the page, in a box that scrolls. Only while it does scroll can the keyboard get there. */
export function scrolling(content: HTMLElement, label: string): HTMLElement {
  const box = element('div', { class: 'wide' }, content);
  const reached = { tabindex: '0', role: 'region', 'aria-label': `${label}, scrolls sideways` };
  const adapt = (): void => {
    const scrolls = box.scrollWidth > box.clientWidth + 1;
    for (const [name, value] of Object.entries(reached)) scrolls ? box.setAttribute(name, value) : box.removeAttribute(name);
  };
  new ResizeObserver(adapt).observe(box);
  return box;
}

/** Entries of a list, each with the text that it is found by. */
export interface Entries {
  elements: readonly HTMLElement[];
  texts: readonly string[];
  /** What the entries are, many of them: `variants`. */
  called: string;
  /** So many stand there at first. */
  first: number;
  /** Which of the others stand there all the same. */
  keeps?: (index: number) => boolean;
}

/** The controls of a list that is longer than its first entries, and what looks again at what stands there; `null` where it is not. */
export function filterOf(entries: Entries): { host: HTMLElement; draw: () => void } | null {
  const all = entries.elements.length;
  if (all <= entries.first) return null;
  const texts = entries.texts.map((text) => text.toLowerCase());
  const status = element('span', { role: 'status', class: 'faint' });
  const label = { 'aria-label': `Find among ${all} ${entries.called}`, placeholder: `Find among ${all}` };
  const box = element('input', { type: 'search', ...label, autocomplete: 'off', spellcheck: 'false' });
  let whole = false;
  const more = button('', () => {
    whole = !whole;
    draw();
  });
  const draw = (): void => {
    const words = box.value.toLowerCase().split(/\s+/).filter((word) => word !== '');
    const found = texts.map((text) => words.every((word) => text.includes(word)));
    const searched = words.length > 0;
    entries.elements.forEach((one, index) => {
      one.classList.toggle('folded', searched ? !found[index] : !whole && index >= entries.first && !entries.keeps?.(index));
    });
    status.textContent = searched ? `${grouped(found.filter(Boolean).length)} of ${grouped(all)}` : '';
    more.textContent = whole ? `List the first ${grouped(entries.first)}` : `List all ${grouped(all)}`;
    more.hidden = searched;
    more.setAttribute('aria-expanded', String(whole));
  };
  box.addEventListener('input', draw);
  draw();
  return { host: element('div', { class: 'filter controls' }, box, more, status), draw };
}
