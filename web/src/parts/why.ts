// Why one costs more than the other, as far as profiles tell.

import { element, fold, pairs, paragraph, section } from '../elements';
import type { PageData } from '../model';
import { tableOf } from '../table';

export function whyOf(data: PageData): HTMLElement | null {
  const { why } = data;
  if (why === null) return null;
  const reasons = why.reasons.flatMap(([heading, paragraphs]) => [
    element('h3', {}, heading),
    ...paragraphs.map((text) => paragraph(text, 'reason')),
  ]);
  const doubts = why.doubts.map(([seen, remedy]) => element('li', {}, seen, ' ', element('span', { class: 'faint' }, remedy)));
  const tables = why.tables.map((table, index) => {
    const made = tableOf(table, { called: 'rows', first: 12 });
    return index === 0 ? element('div', {}, element('h3', {}, table.heading), made) : fold(table.heading, made);
  });
  return section(
    'why',
    'Why',
    ...reasons,
    doubts.length > 0 ? element('h3', {}, 'What makes this doubtful') : null,
    doubts.length > 0 ? element('ul', {}, ...doubts) : null,
    linkOf(why.flame_page),
    ...tables,
    why.method.length > 0 ? fold('How it was captured', pairs(why.method)) : null,
  );
}

/** To the flame graphs, which are a file beside this one. Only a path may be linked to, whatever the record says. */
function linkOf(path: string | null): HTMLElement | null {
  if (path === null) return null;
  const relative = `./${path.split('/').map(encodeURIComponent).join('/')}`;
  return element('p', {}, element('a', { href: relative, class: 'onward' }, 'Flame graphs: which functions, called by which'));
}
