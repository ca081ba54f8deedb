// What came of it: the question with its answer, what forbids or doubts it, the verdicts, and the variants' figures.

import { judgedTable } from '../cells';
import { element, fold, paragraph, present, prose, section, sign, type Child } from '../elements';
import { swatch } from '../looks';
import type { Finding, Grade, PageData, RunState } from '../model';
import { moment, share } from '../numbers';
import { filterOf, tableOf } from '../tables';

/** What is said of a state before the answer, with a sign that needs no colour. */
const STATES: Record<RunState, readonly [sign: string, words: string]> = {
  decided: ['✓', 'Decided'],
  open: ['…', 'Inconclusive'],
  invalid: ['✕', 'Invalid'],
  measured: ['–', 'Measured, nothing is compared'],
  broken: ['!', 'The run broke off'],
};

export function answerOf(data: PageData): HTMLElement {
  const [mark, words] = STATES[data.state];
  const facts = present([
    data.experiment === data.title ? null : `Experiment ${data.experiment}`,
    moment(data.created),
    data.verdicts.length > 0 ? `differences below ${share(data.margin)} do not matter here` : null,
    `Proofload ${data.proofload}`,
  ]);
  const sentence = /[.!?…]$/.test(data.answer) ? data.answer : `${data.answer}.`;
  return element(
    'section',
    { id: 'answer', 'aria-labelledby': 'question', tabindex: -1, class: `answer ${data.state}` },
    element('h1', { id: 'question' }, data.title),
    element('div', { class: 'said' }, element('p', { class: 'state' }, sign(mark), words), paragraph(sentence, 'sentence')),
    element('p', { class: 'faint facts' }, ...facts.map((fact) => element('span', {}, fact))),
  );
}

export function verdictsOf({ verdicts, margin }: PageData): HTMLElement | null {
  const rows = verdicts.map((verdict) => ({ ...verdict, label: verdict.comparison }));
  return rows.length === 0 ? null : section('verdicts', 'Results', ...judgedTable([[null, rows]], margin, 'Comparison'));
}

/** Response times over the rate; `null` where capacity was not measured. */
export function capacityOf({ capacity }: PageData): HTMLElement | null {
  if (capacity === null) return null;
  const picture = element(
    'picture',
    {},
    element('source', { media: '(prefers-color-scheme: dark)', srcset: capacity.dark }),
    element('img', { src: capacity.light, alt: capacity.told, class: 'curve' }),
  );
  return section('capacity', 'Capacity', picture, ...capacity.tables.map((table) => fold(table.heading, tableOf(table))));
}

export function variantsOf({ figures, parts }: PageData): HTMLElement | null {
  if (figures.rows.length === 0) return null;
  const folds = parts.map((part) => fold(part.heading, tableOf(part)));
  return section(
    'variants',
    'Variants',
    paragraph('Means over the blocks that count; sample sizes are below.', 'faint'),
    tableOf(figures, { mark: swatch, called: 'variants', label: 'Figures of the variants' }),
    folds.length > 0 ? element('div', { class: 'folds' }, ...folds) : null,
  );
}

const EVIDENCE_AT_FIRST = 4;
const GRADES: Record<Grade, readonly [sign: string, word: string]> = { invalid: ['✕', 'Invalid'], warning: ['!', 'Warning'], note: ['i', 'Note'], fine: ['✓', 'Fine'] };

/**
 * What makes the result invalid, for the top of the page, or what else was found; `null` where nothing was. Those of one check stand
 * together, so that what is said of the check is said once.
 */
export function findingsOf(data: PageData, voiding: boolean): HTMLElement | null {
  const groups = new Map<string, Finding[]>();
  for (const one of data.findings.filter(({ grade }) => (grade === 'invalid') === voiding)) {
    const key = `${one.grade} ${one.number ?? one.evidence}`;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  const made = [...groups.values()].flatMap((group) => group.slice(0, 1).map((first) => articleOf(first, group, data)));
  const [id, heading] = voiding ? ['voids', 'Invalid'] as const : ['findings', 'Findings'] as const;
  return made.length === 0 ? null : section(id, heading, ...made);
}

function articleOf(first: Finding, group: readonly Finding[], data: PageData): HTMLElement {
  const remedies = [...new Set(group.map(({ remedy }) => remedy))].filter((remedy) => remedy !== '');
  const [mark, word] = GRADES[first.grade];
  return element(
    'article',
    { class: `finding ${first.grade}` },
    element('h3', {}, sign(mark), present([word, first.number]).join(' ')),
    element('div', {}, ...evidenceOf(group), ...remedies.map((remedy) => paragraph(remedy, 'remedy')), explanationOf(first, data)),
  );
}

function evidenceOf(group: readonly Finding[]): Child[] {
  const texts = group.map(({ evidence }) => evidence);
  if (texts.length === 1) return texts.map((text) => paragraph(text));
  const lines = texts.map((text) => element('li', {}, ...prose(text)));
  const filter = filterOf({ elements: lines, texts, called: 'places', first: EVIDENCE_AT_FIRST });
  return [element('ul', {}, ...lines), filter?.host ?? null];
}

function explanationOf({ number }: Finding, { explanations }: PageData): Child {
  const told = (explanations[number ?? ''] ?? []).map((text) => paragraph(text));
  return told.length === 0 ? null : fold('Explanation', ...told);
}
