// Long lists: the first entries stand there, the others come at a button, and a box finds entries by their text. Paper has all
// of them. It must not know what the entries are.

import { button, element } from './elements';
import { count } from './numbers';

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

export interface Filter {
  host: HTMLElement;
  /** Looks again at what stands there. */
  draw: () => void;
}

/** The controls of a list that is longer than its first entries; `null` where it is not. */
export function filterOf(entries: Entries): Filter | null {
  const all = entries.elements.length;
  if (all <= entries.first) return null;
  const texts = entries.texts.map((text) => text.toLowerCase());
  const status = element('span', { role: 'status', class: 'faint' });
  const box = element('input', { type: 'search', 'aria-label': `Find among ${all} ${entries.called}`, placeholder: `Find among ${all}`, autocomplete: 'off', spellcheck: 'false' });
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
    const number = found.filter(Boolean).length;
    status.textContent = searched ? `${count(number)} of ${count(all)}` : '';
    more.textContent = whole ? `List the first ${count(entries.first)}` : `List all ${count(all)}`;
    more.hidden = searched;
    more.setAttribute('aria-expanded', String(whole));
  };
  box.addEventListener('input', draw);
  draw();
  return { host: element('div', { class: 'filter controls' }, box, more, status), draw };
}
