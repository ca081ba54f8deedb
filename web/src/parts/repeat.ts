// How to do it again, and what to do next.

import { command } from '../copy';
import { element, paragraph, section } from '../elements';
import type { PageData } from '../model';

const WITH_REASON = /^(?<reason>[^`]*?): (?<text>proofload .+)$/;

export function repeatOf(data: PageData): HTMLElement {
  const next = data.next.map((text) => element('li', {}, ...stepOf(text)));
  return section(
    'repeat',
    'Do it again',
    paragraph('The same experiment with the same seed, so with the same order of blocks and variants:'),
    command(data.repeat),
    data.command === data.repeat ? null : element('p', { class: 'faint' }, 'What was run here: ', element('code', {}, data.command)),
    next.length > 0 ? element('h3', {}, 'What to do next') : null,
    next.length > 0 ? element('ul', { class: 'steps' }, ...next) : null,
  );
}

/** A step that ends in a command has the command to take away. */
function stepOf(text: string): (HTMLElement | string)[] {
  const found = WITH_REASON.exec(text)?.groups;
  if (found?.['reason'] === undefined || found['text'] === undefined) return [text];
  return [found['reason'], command(found['text'])];
}
