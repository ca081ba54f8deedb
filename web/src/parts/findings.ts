// Findings: what voids the result, what makes it doubtful, what is good to know. Those of one check stand together, so that what
// is said of the check is said once.

import { element, fold, paragraph, present, section, type Child } from '../elements';
import { filterOf } from '../filter';
import type { Finding, Grade, PageData } from '../model';
import { command } from '../copy';

const EVIDENCE_AT_FIRST = 4;
const SIGNS: Record<Grade, string> = { void: '✕', warning: '!', note: 'i' };
const GRADES: Record<Grade, string> = { void: 'Void', warning: 'Warning', note: 'Note' };

/** What voids the result, for the top of the page; `null` where nothing does. */
export function voidingOf(data: PageData): HTMLElement | null {
  return findingsOf(data, 'voids', 'What forbids a conclusion', (grade) => grade === 'void');
}

/** What else was found. */
export function doubtsOf(data: PageData): HTMLElement | null {
  return findingsOf(data, 'findings', 'Findings', (grade) => grade !== 'void');
}

function findingsOf(data: PageData, id: string, heading: string, wanted: (grade: Grade) => boolean): HTMLElement | null {
  const found = data.findings.filter(({ grade }) => wanted(grade));
  if (found.length === 0) return null;
  const groups = new Map<string, Finding[]>();
  for (const one of found) {
    const key = `${one.grade} ${one.number ?? one.evidence}`;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  const made = [...groups.values()].map((group) => groupOf(group, data.explained_by));
  return section(id, heading, ...made);
}

function groupOf(group: readonly Finding[], explainedBy: string | null): HTMLElement | null {
  const first = group[0];
  if (first === undefined) return null;
  const remedies = [...new Set(group.map(({ remedy }) => remedy))].filter((remedy) => remedy !== '');
  const grade = element(
    'h3',
    {},
    element('span', { class: 'sign', 'aria-hidden': 'true' }, SIGNS[first.grade]),
    present([GRADES[first.grade], first.number]).join(' '),
  );
  return element(
    'article',
    { class: `finding ${first.grade}` },
    grade,
    element('div', {}, ...evidenceOf(group), ...remedies.map((remedy) => paragraph(remedy, 'remedy')), explanationOf(first, explainedBy)),
  );
}

function evidenceOf(group: readonly Finding[]): Child[] {
  if (group.length === 1) return group.map(({ evidence }) => paragraph(evidence, 'evidence'));
  const lines = group.map(({ evidence }) => element('li', {}, evidence));
  const texts = group.map(({ evidence }) => evidence);
  const filter = filterOf({ elements: lines, texts, called: 'places', first: EVIDENCE_AT_FIRST });
  return [element('ul', { class: 'evidence' }, ...lines), filter?.host ?? null];
}

function explanationOf(finding: Finding, explainedBy: string | null): Child {
  const there = finding.explanation.length > 0;
  if (!there && explainedBy === null) return null;
  const paragraphs = finding.explanation.map((text) => paragraph(text));
  const told = there || explainedBy === null ? null : command(explainedBy);
  return fold('Why, and what else may be done', ...paragraphs, told);
}
