// A picture with its heading, what must be known to read it, and the same as a table. Where there are several of a kind one is
// chosen. It must not know what is drawn.

import { element, paragraph, type Child } from './elements';
import type { Table } from './model';
import { tableOf } from './table';

export interface Picture {
  heading: string;
  /** How to read it, and how many it rests on. */
  notes: readonly string[];
  draw: () => Element;
  /** What it shows, in figures. */
  table: () => Table;
}

/** A picture on the page. Its table is made when somebody opens it. */
export function pictureOf(picture: Picture): HTMLElement {
  return element('figure', {}, element('figcaption', {}, element('h3', {}, picture.heading)), ...contentOf(picture));
}

function contentOf(picture: Picture): Child[] {
  const notes = picture.notes.map((note) => paragraph(note, 'note'));
  return [element('div', { class: 'chart' }, picture.draw()), ...notes, behind(picture)];
}

function behind(picture: Picture): HTMLElement {
  const summary = element('summary', {}, 'As table', element('span', { class: 'spoken' }, `: ${picture.heading}`));
  const host = element('details', { class: 'behind' }, summary);
  host.addEventListener('toggle', () => {
    if (host.open && host.childElementCount === 1) host.append(tableOf(picture.table(), { label: picture.heading, first: 60 }));
  });
  return host;
}

/** Several pictures in one place, of which one is shown. Each is drawn once, when it is first chosen. */
export class Chooser {
  readonly host: HTMLElement;
  readonly #made = new Map<number, Child[]>();
  readonly #select: HTMLSelectElement;
  readonly #content = element('div');
  readonly #pictures: readonly Picture[];

  constructor(label: string, pictures: readonly Picture[], options: readonly string[]) {
    this.#pictures = pictures;
    this.#select = element('select', {}, ...options.map((text, value) => element('option', { value }, text)));
    this.#select.addEventListener('change', () => this.show(this.#select.selectedIndex));
    const field = element('label', { class: 'field controls' }, element('span', {}, label), this.#select);
    this.host = element('figure', {}, element('figcaption', {}), pictures.length > 1 ? field : null, this.#content);
    this.show(0);
  }

  show(index: number): void {
    const picture = this.#pictures[index];
    if (picture === undefined) return;
    const made = this.#made.get(index) ?? contentOf(picture);
    this.#made.set(index, made);
    this.#select.selectedIndex = index;
    this.host.querySelector('figcaption')?.replaceChildren(element('h3', {}, picture.heading));
    this.#content.replaceChildren(...made.filter((child) => child !== null));
  }
}
