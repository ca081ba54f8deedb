// A picture with its heading, what must be known to read it, and the same as a table. Where there are several of a kind one is
// chosen. It must not know what the figures are.

import { Frame, type Chart, type Toggle } from './chart';
import { element, paragraph, present } from './elements';
import type { PageTable } from './model';
import { tableOf } from './tables';
import type { View } from './view';

export interface Picture {
  heading: string;
  /** How to read it, and how many it rests on. */
  notes: readonly string[];
  chart: (on: boolean) => Chart;
  /** A button that changes the chart. */
  toggle?: Toggle;
  /** Leaves variants out; without it all stand there. */
  view?: View;
  /** What it shows, in figures, where that is not its lines at each column. */
  table?: () => PageTable;
}

/** A picture on the page. */
export function pictureOf(picture: Picture): HTMLElement {
  return element('figure', {}, element('figcaption', {}, element('h3', {}, picture.heading)), ...contentOf(picture));
}

function contentOf({ heading, notes, chart, toggle, view, table = () => figuresOf(chart(false)) }: Picture): HTMLElement[] {
  const { host } = new Frame(view ?? null, chart, toggle);
  return [element('div', { class: 'chart' }, host), ...notes.map((note) => paragraph(note, 'note')), behind(heading, table)];
}

/** A row for each column of a chart, a column for each line. */
export function figuresOf({ axis, columns, panels, title, told = [...columns.keys()] }: Chart): PageTable {
  const lines = panels.flatMap((panel) => panel.lines.flatMap(({ name, tell }) => (tell ? [{ name, tell }] : [])));
  const rows = told.map((column) => [title(column), ...lines.map(({ tell }) => tell(column).text)]);
  return { heading: '', columns: [axis.name, ...lines.map(({ name }) => name)], names: 1, rows };
}

/** A picture's figures. The table is made when somebody opens it. */
export function behind(heading: string, table: () => PageTable): HTMLElement {
  const summary = element('summary', {}, 'As table', element('span', { class: 'spoken' }, `: ${heading}`));
  const host = element('details', { class: 'behind' }, summary);
  host.addEventListener('toggle', () => {
    if (host.open && host.childElementCount === 1) host.append(tableOf(table(), { label: heading, first: 60 }));
  });
  return host;
}

/** Several pictures in one place, of which one is shown. Each is drawn once, when it is first chosen. */
export class Chooser {
  readonly host: HTMLElement;
  readonly #made = new Map<Picture, HTMLElement[]>();
  readonly #select: HTMLSelectElement;
  readonly #content = element('div');
  readonly #caption = element('figcaption');

  constructor(label: string, readonly pictures: readonly Picture[], options: readonly string[]) {
    this.#select = element('select', {}, ...options.map((text, value) => element('option', { value }, text)));
    this.#select.addEventListener('change', () => this.show(this.#select.selectedIndex));
    const field = element('label', { class: 'field controls' }, element('span', {}, label), this.#select);
    this.host = element('figure', {}, ...present([this.#caption, pictures.length > 1 ? field : null, this.#content]));
    this.show(0);
  }

  show(index: number): void {
    const picture = this.pictures[index];
    if (picture === undefined) return;
    const made = this.#made.get(picture) ?? contentOf(picture);
    this.#made.set(picture, made);
    this.#select.selectedIndex = index;
    this.#caption.replaceChildren(element('h3', {}, picture.heading));
    this.#content.replaceChildren(...made);
  }
}
