// What the result rests on: what it takes for granted, how it was measured, how many each figure comes from, on which machine,
// and the plan as it was run.

import { element, fold, pairs, paragraph, section, type Child } from '../elements';
import { swatch } from '../charts/index';
import type { Assumption, PageData, Table } from '../model';
import { count } from '../numbers';
import { tableOf } from '../table';

const SIGNS: Record<string, string> = { doubtful: '!', unchecked: '?', supported: '✓' };

export function assumptionsOf(data: PageData): HTMLElement | null {
  if (data.assumptions.length === 0) return null;
  const items = data.assumptions.map(({ standing, text, evidence }: Assumption) =>
    element(
      'li',
      { class: standing in SIGNS ? standing : 'unchecked' },
      element('span', { class: 'standing' }, element('span', { class: 'sign', 'aria-hidden': 'true' }, SIGNS[standing] ?? '?'), standing),
      element('span', {}, element('span', { class: 'taken' }, text), element('span', { class: 'faint' }, evidence)),
    ),
  );
  return section('assumptions', 'What this takes for granted', element('ul', { class: 'assumptions' }, ...items));
}

export function methodOf(data: PageData): HTMLElement {
  const left = data.left_out.map((text) => element('li', {}, text));
  return section(
    'method',
    'How it was measured',
    data.method.length > 0 ? pairs(data.method) : null,
    ...sizesOf(data),
    left.length > 0 ? element('h3', {}, 'What is not in this page') : null,
    left.length > 0 ? element('ul', {}, ...left) : null,
  );
}

function sizesOf(data: PageData): Child[] {
  if (data.variants.length === 0) return [];
  const variants = { heading: 'Trials and requests', columns: ['variant', 'trials that count', 'requests in measured slices'], names: 1, rows: rowsOfVariants(data) };
  const mark = (row: number): Element => swatch(row);
  const judged = data.verdicts.filter(({ blocks }) => blocks.length > 0);
  const comparisons: Table = {
    heading: 'Blocks',
    columns: ['comparison', 'metric', 'blocks that count'],
    names: 2,
    rows: judged.map(({ comparison, metric, blocks }) => [comparison, metric, count(blocks.length)]),
  };
  return [
    element('h3', {}, 'How many each figure rests on'),
    paragraph('A block is one observation, however many requests it took: intervals come from blocks.', 'faint'),
    judged.length > 0 ? tableOf(comparisons, { called: 'comparisons', first: 12 }) : null,
    tableOf(variants, { mark, called: 'variants', first: 12 }),
  ];
}

function rowsOfVariants(data: PageData): string[][] {
  return data.variants.map(({ name, trials, requests, void: isVoid }) => [isVoid ? `${name} (void)` : name, count(trials), count(requests)]);
}

export function machineOf(data: PageData): HTMLElement | null {
  return data.place.length === 0 ? null : section('machine', 'Where', pairs(data.place));
}

export function planOf(data: PageData): HTMLElement | null {
  if (data.plan === null) return null;
  const text = element('pre', { tabindex: 0, 'aria-label': 'The experiment file', role: 'region' }, element('code', {}, data.plan));
  return section('plan', 'The plan as it was run', fold('The experiment file', text));
}
