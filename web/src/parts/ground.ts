// What the result rests on: why it is so, what it assumes, how it was measured and on which machine, the plan, and how to do it again.

import { command, element, fold, pairs, paragraph, prose, section, sign, type Child } from '../elements';
import { swatch } from '../looks';
import type { PageData, Standing } from '../model';
import { grouped } from '../numbers';
import { tableOf } from '../tables';

/** Why one costs more than the other, as far as profiles tell. */
export function whyOf({ why }: PageData): HTMLElement | null {
  if (why === null) return null;
  const reasons = why.reasons.flatMap(([heading, paragraphs]) => [element('h3', {}, heading), ...paragraphs.map((text) => paragraph(text))]);
  const doubts = why.doubts.map(([seen, remedy]) => element('li', {}, ...prose(seen), ' ', element('span', { class: 'faint' }, ...prose(remedy))));
  const tables = why.tables.map((table, index) => {
    const made = tableOf(table, { first: 12 });
    return index === 0 ? element('div', {}, element('h3', {}, table.heading), made) : fold(table.heading, made);
  });
  // The flame graphs are a file beside this one. Only a path may be linked to, whatever the record says.
  const path = why.flame_page?.split('/').map(encodeURIComponent).join('/');
  const link = path === undefined ? null : element('p', {}, element('a', { href: `./${path}`, class: 'onward' }, 'Flame graphs: which functions, called by which'));
  const method = why.method.length > 0 ? fold('How profiles were taken', pairs(why.method)) : null;
  return section('why', 'Why', ...reasons, ...listOf('Doubts', doubts), link, ...tables, method);
}

/** A list under its heading, where it has entries. */
function listOf(heading: string, items: HTMLElement[], kind: string | null = null): Child[] {
  return items.length === 0 ? [] : [element('h3', {}, heading), element('ul', { class: kind }, ...items)];
}

const STANDINGS: Record<Standing, string> = { doubtful: '!', unchecked: '?', supported: '✓' };

export function assumptionsOf({ assumptions }: PageData): HTMLElement | null {
  const items = assumptions.map(({ standing, statement, evidence }) =>
    element(
      'li',
      { class: standing },
      element('span', { class: 'standing' }, sign(STANDINGS[standing]), standing),
      element('span', {}, element('span', {}, ...prose(statement)), element('span', { class: 'faint' }, ...prose(evidence))),
    ),
  );
  return items.length === 0 ? null : section('assumptions', 'Assumptions', element('ul', { class: 'assumptions' }, ...items));
}

export function methodOf(data: PageData): HTMLElement {
  const method = data.method.length > 0 ? pairs(prosePairs(data.method)) : null;
  const left = data.left_out.map((text) => element('li', {}, text));
  return section('method', 'Method', method, ...sizesOf(data), ...listOf('Left out of this page', left));
}

/** Names with prose. */
function prosePairs(list: readonly (readonly [string, string])[]): [string, Child][] {
  return list.map(([name, text]) => [name, element('span', {}, ...prose(text))]);
}

function sizesOf({ variants, verdicts }: PageData): Child[] {
  if (variants.length === 0) return [];
  const judged = verdicts.filter(({ blocks }) => blocks.length > 0);
  const blocks = judged.map(({ comparison, metric, blocks }) => [comparison, metric, grouped(blocks.length)]);
  const trials = variants.map(({ name, trials, requests, invalid }) => [invalid ? `${name} (invalid)` : name, grouped(trials), grouped(requests)]);
  return [
    element('h3', {}, 'Sample sizes'),
    paragraph('A block is one observation, however many requests it took: intervals come from blocks.', 'faint'),
    blocks.length > 0
      ? tableOf({ heading: 'Blocks', columns: ['comparison', 'metric', 'blocks that count'], names: 2, rows: blocks }, { called: 'comparisons', first: 12 })
      : null,
    tableOf(
      { heading: 'Trials and requests', columns: ['variant', 'trials that count', 'requests in measured slices'], names: 1, rows: trials },
      { mark: swatch, called: 'variants', first: 12 },
    ),
  ];
}

export function machineOf({ place }: PageData): HTMLElement | null {
  return place.length === 0 ? null : section('machine', 'Environment', pairs(prosePairs(place)));
}

export function planOf({ plan }: PageData): HTMLElement | null {
  if (plan === null) return null;
  const text = element('pre', { tabindex: 0, 'aria-label': 'The experiment file', role: 'region' }, element('code', {}, plan));
  return section('plan', 'Experiment file', fold('As it was run', text));
}

export function repeatOf(data: PageData): HTMLElement {
  const next = data.next.map((text) => element('li', {}, ...stepOf(text)));
  return section(
    'repeat',
    'Reproduce',
    paragraph('The same experiment with the same seed, so with the same order of blocks and variants:'),
    command(data.repeat),
    data.command === data.repeat ? null : element('p', { class: 'faint' }, 'What was run here: ', element('code', {}, data.command)),
    ...listOf('Next steps', next, 'steps'),
  );
}

/** A step that ends in a command has the command to take away. */
function stepOf(text: string): Child[] {
  const { reason, line } = /^(?<reason>[^`]*?): (?<line>proofload .+)$/.exec(text)?.groups ?? {};
  return reason === undefined || line === undefined ? prose(text) : [reason, command(line)];
}
