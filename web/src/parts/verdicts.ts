// The verdicts: what came of each comparison, its estimate, and its interval as a bar against the margin.

import { element, paragraph, section, type Child } from '../elements';
import { filterOf } from '../filter';
import type { Outcome, PageData, Ratio, Verdict } from '../model';
import { share } from '../numbers';
import { scrolling } from '../table';
import { RatioScale } from './interval';

const ROWS_AT_FIRST = 16;

/** Signs by which outcomes are known without their colour. */
const SIGNS: Record<Outcome, string> = { better: '▲', worse: '▼', equivalent: '=', inconclusive: '?', void: '✕', no_success: '✕' };

/** A verdict's word with its sign and colour. */
export function wordOf(outcome: Outcome, word: string): HTMLElement {
  return element('span', { class: `word ${outcome}` }, element('span', { 'aria-hidden': 'true' }, SIGNS[outcome]), word);
}

export function verdictsOf(data: PageData): HTMLElement | null {
  if (data.verdicts.length === 0) return null;
  const ratios = data.verdicts.map(ratioOf);
  const scale = ratios.some((ratio) => ratio !== null) ? new RatioScale(ratios, data.margin) : null;
  const rows = data.verdicts.map((verdict) => rowOf(verdict, scale));
  const head = ['Verdict', 'Comparison', 'Estimate and interval', ...(scale === null ? [] : ['The interval against the margin'])];
  const table = element(
    'table',
    { class: 'verdicts', role: 'table' },
    element('thead', {}, element('tr', {}, ...head.map((name) => element('th', { scope: 'col' }, name)))),
    element('tbody', { role: 'rowgroup' }, ...rows),
    scale === null ? null : footOf(scale),
  );
  const texts = data.verdicts.map(({ comparison, metric, word }) => `${comparison} ${metric} ${word}`);
  const filter = filterOf({ elements: rows, texts, called: 'verdicts', first: ROWS_AT_FIRST });
  return section('verdicts', 'Verdicts', filter?.host ?? null, scrolling(table, 'Verdicts'), scale === null ? null : paragraph(keyOf(data.margin), 'note'));
}

/** What is void shows no number, even where the record should have one. */
function ratioOf({ outcome, ratio }: Verdict): Ratio | null {
  return outcome === 'void' || outcome === 'no_success' ? null : ratio;
}

function rowOf(verdict: Verdict, scale: RatioScale | null): HTMLElement {
  const also = verdict.also.map((text) => element('small', {}, `also ${text}, not judged`));
  const ratio = ratioOf(verdict);
  const bar = ratio === null || scale === null ? null : scale.bar(ratio, verdict.outcome, `${verdict.word}: ${verdict.detail}`);
  const cells: Child[] = [
    element('td', { role: 'cell', class: 'outcome' }, wordOf(verdict.outcome, verdict.word)),
    element('th', { scope: 'row', role: 'rowheader' }, verdict.comparison),
    element('td', { role: 'cell', class: 'estimate' }, element('strong', {}, verdict.detail), ...also),
    scale === null ? null : element('td', { role: 'cell', class: 'interval' }, bar),
  ];
  return element('tr', { role: 'row' }, ...cells);
}

function footOf(scale: RatioScale): HTMLElement {
  return element('tfoot', { 'aria-hidden': 'true' }, element('tr', {}, element('td', { colspan: 3, class: 'blank' }), element('td', { class: 'interval' }, scale.axis())));
}

function keyOf(margin: number): string {
  const band = margin > 0 ? ` The shaded band is the margin of ${share(margin)}: differences inside of it do not matter here.` : '';
  return `A bar is the range of differences that the blocks do not contradict, its line the estimate; where it crosses “no change” there may be none.${band}`;
}
