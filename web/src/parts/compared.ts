// Two variants side by side, once two are chosen: their figures, and the verdict about them where the plan asked for one. It
// computes no difference: only what was planned is judged.

import { element, paragraph, type Child } from '../elements';
import { swatch } from '../charts/index';
import type { PageData, Table } from '../model';
import { tableOf } from '../table';
import type { View } from '../view';

export function comparedOf(data: PageData, view: View): HTMLElement {
  const host = element('div', { class: 'compared', 'aria-live': 'polite' });
  const draw = (): void => host.replaceChildren(...(view.pair === null ? [] : contentOf(data, view.pair)));
  view.onChange(draw);
  return host;
}

function contentOf(data: PageData, [baseline, candidate]: readonly [number, number]): Exclude<Child, null>[] {
  const name = (variant: number): string => data.variants[variant]?.name ?? '';
  const heading = element('h3', {}, swatch(candidate), name(candidate), element('span', { class: 'faint' }, ' against '), swatch(baseline), name(baseline));
  const table = sideBySide(data, baseline, candidate);
  return [heading, ...saidOf(data, baseline, candidate), tableOf(table, { label: 'The two side by side' })];
}

/** What is concluded of the two, either way round. */
function saidOf(data: PageData, baseline: number, candidate: number): HTMLElement[] {
  const about = data.verdicts.filter(
    (one) => (one.baseline === baseline && one.candidate === candidate) || (one.baseline === candidate && one.candidate === baseline),
  );
  if (about.length === 0) return [paragraph('The plan does not compare these two, so there is no verdict about them.', 'faint')];
  return about.map(({ word, comparison, detail }) => paragraph(`${word}: ${comparison}: ${detail}`));
}

/** The figures' table turned: a row for each figure, a column for each of the two. */
function sideBySide(data: PageData, baseline: number, candidate: number): Table {
  const { columns, names, rows } = data.figures;
  const column = (variant: number): string => data.variants[variant]?.name ?? '';
  const turned = columns.map((name, index) => [name, rows[baseline]?.[index] ?? '–', rows[candidate]?.[index] ?? '–']);
  return { heading: '', columns: ['', column(baseline), column(candidate)], names: 1, rows: turned.slice(names) };
}
