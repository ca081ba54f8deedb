'use strict';

// The table of functions, heaviest first, as bottom-up profiles are read: time in the function itself and in all that it calls.
// It shows the rows that it is given and computes none of their figures.

const ROWS_FIRST = 40;
const ROWS_MORE = 200;

/** Columns by what they are sorted by. Those of B and of the difference are there where two variants are compared. */
const COLUMNS = {
  name: { text: 'Function', of: (row) => row.name, isText: true },
  kind: { text: 'Kind', of: (row) => row.kindName, isText: true },
  selfA: { text: 'self', side: 'A', of: (row) => row.selfA },
  selfB: { text: 'self', side: 'B', of: (row) => row.selfB },
  self: { text: 'self', side: 'B − A', of: (row) => row.selfB - row.selfA },
  totalA: { text: 'total', side: 'A', of: (row) => row.totalA },
  totalB: { text: 'total', side: 'B', of: (row) => row.totalB },
  total: { text: 'total', side: 'B − A', of: (row) => row.totalB - row.totalA },
};
const CHANGES = ['self', 'total'];

class FunctionTable {
  /** `about(frame)` is called for the function whose name is pressed. */
  constructor(host, about) {
    Object.assign(this, { host, about, rows: [], sortedBy: null, falling: true, limit: ROWS_FIRST });
    this.count = element('p', { class: 'faint', role: 'status' });
    this.table = element('table', { class: 'functions' });
    this.more = element('button', { type: 'button', on: { click: () => this.showMore() } });
    host.append(this.count, element('div', { class: 'wide' }, this.table), this.more);
  }

  /** Rows with their figures; `whole` has what 100 % is, and the unit is that of all of them. */
  show({ rows, compares, whole, unit, all }) {
    Object.assign(this, { rows, compares, whole, unit, all });
    const columns = this.columns();
    if (!columns.includes(this.sortedBy)) [this.sortedBy, this.falling] = [compares ? 'self' : 'selfA', true];
    this.draw();
  }

  columns() {
    return this.compares ? Object.keys(COLUMNS) : ['name', 'kind', 'selfA', 'totalA'];
  }

  sortBy(column) {
    this.falling = this.sortedBy === column ? !this.falling : !COLUMNS[column].isText;
    this.sortedBy = column;
    this.draw();
    this.table.querySelector(`[data-column="${column}"]`).focus();
  }

  showMore() {
    this.limit += ROWS_MORE;
    this.draw();
  }

  sorted() {
    const { of, isText } = COLUMNS[this.sortedBy];
    const way = this.falling ? -1 : 1;
    // Of differences the largest in either direction come first.
    const size = CHANGES.includes(this.sortedBy) ? (row) => Math.abs(of(row)) : of;
    const compare = isText
      ? (one, other) => way * of(one).localeCompare(of(other), 'en')
      : (one, other) => way * (size(one) - size(other));
    return [...this.rows].sort((one, other) => compare(one, other) || one.frame - other.frame);
  }

  draw() {
    const shown = this.sorted().slice(0, this.limit);
    const caption = element('caption', { class: 'spoken', text: `Functions by time, in ${this.unit}` });
    const body = element('tbody', {}, ...shown.map((row) => this.row(row)));
    this.table.replaceChildren(caption, this.heads(), body);
    const left = this.rows.length - shown.length;
    const of = this.rows.length < this.all ? ` of ${count(this.all)}, those that match` : '';
    this.count.textContent = `${count(this.rows.length)} functions${of}, in ${this.unit}. A name leads to its callers and to what it calls.`;
    this.more.textContent = `Show ${count(Math.min(left, ROWS_MORE))} more`;
    this.more.hidden = left <= 0;
  }

  heads() {
    const head = (column) => {
      const { text, side, isText } = COLUMNS[column];
      const sorted = this.sortedBy === column ? (this.falling ? 'descending' : 'ascending') : 'none';
      const button = element('button', { type: 'button', 'data-column': column, on: { click: () => this.sortBy(column) } });
      button.append(text, side && this.compares ? element('b', { text: ` ${side}` }) : '');
      return element('th', { scope: 'col', 'aria-sort': sorted, class: isText ? null : 'figure' }, button);
    };
    return element('thead', {}, element('tr', {}, ...this.columns().map(head)));
  }

  row(row) {
    const { whole, compares } = this;
    const name = element('button', { type: 'button', text: row.name, on: { click: () => this.about(row.frame) } });
    const where = element('span', { class: 'where', text: [row.where, row.pack].filter((part) => part !== '').join(' · ') });
    const kind = element('td', { class: 'kind' }, element('i', { class: `swatch kind-${row.kind}` }), row.kindName);
    const cells = compares
      ? [
          this.figure(row.selfA, whole.a),
          this.figure(row.selfB, whole.b),
          this.change(row.selfB - row.selfA, row.interval),
          this.figure(row.totalA, whole.a),
          this.figure(row.totalB, whole.b),
          this.change(row.totalB - row.totalA, null),
        ]
      : [this.figure(row.selfA, whole.a), this.figure(row.totalA, whole.a)];
    return element('tr', {}, element('th', { scope: 'row' }, name, where), kind, ...cells);
  }

  figure(value, whole) {
    if (value <= 0) return element('td', { class: 'figure none', text: '–' });
    return element('td', { class: 'figure' }, amount(value), element('small', { text: percent(value, whole) }));
  }

  /** A difference, with its interval where there is one. One whose interval has both signs may be noise, and looks it. */
  change(value, interval) {
    if (interval === null) return element('td', { class: 'figure', text: signed(value) });
    const unsure = interval.low <= 0 && interval.high >= 0;
    const title = unsure ? 'The interval has both signs: this may be noise.' : null;
    const range = element('small', { text: `${signed(interval.low)} to ${signed(interval.high)}` });
    return element('td', { class: `figure ${unsure ? 'none' : value > 0 ? 'more' : 'less'}`, title }, signed(value), range);
  }
}
