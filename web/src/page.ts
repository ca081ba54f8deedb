// The page from top to bottom: the question and its answer, what forbids or doubts it, the verdicts, then the evidence. Parts that
// have no data are not there.

import { element, present } from './elements';
import type { PageData } from './model';
import { answerOf } from './parts/answer';
import { blocksOf, memoryOf } from './parts/blocks';
import { comparedOf } from './parts/compared';
import { contentsOf } from './parts/contents';
import { errorsOf } from './parts/errors';
import { factorsOf } from './parts/factors';
import { doubtsOf, voidingOf } from './parts/findings';
import { legendOf } from './parts/legend';
import { assumptionsOf, machineOf, methodOf, planOf } from './parts/method';
import { repeatOf } from './parts/repeat';
import { timesOf } from './parts/times';
import { trialOf } from './parts/trial';
import { variantsOf } from './parts/variants';
import { verdictsOf } from './parts/verdicts';
import { whyOf } from './parts/why';
import { Choice, shownAtFirst } from './view';

/** All that stands in the body. */
export function pageOf(data: PageData): HTMLElement[] {
  const compared = data.verdicts.map(({ baseline, candidate }) => [baseline, candidate] as const);
  const view = new Choice(data.variants.length, shownAtFirst(data.variants.length, compared));
  const conclusion = present([answerOf(data), voidingOf(data), verdictsOf(data), doubtsOf(data), variantsOf(data)]);
  const pictures = present([
    blocksOf(data, view),
    timesOf(data, view),
    trialOf(data, view),
    factorsOf(data, view),
    memoryOf(data, view),
    errorsOf(data, view),
  ]);
  const ground = present([whyOf(data), assumptionsOf(data), methodOf(data), machineOf(data), planOf(data), repeatOf(data)]);
  const legend = pictures.length > 0 ? legendOf(data, view) : null;
  const evidence = element('div', { class: 'evidence' }, legend, legend === null ? null : comparedOf(data, view), ...pictures);
  return [
    element('a', { class: 'skip', href: '#answer' }, 'To the answer'),
    contentsOf([...conclusion, ...pictures, ...ground]),
    element('main', {}, ...conclusion, evidence, ...ground),
    element('footer', {}, `Drawn by Proofload ${data.proofload} from its record. This file is all there is to it: it loads nothing.`),
  ];
}
