// The page from top to bottom: the question and its answer, what forbids or doubts it, the verdicts, then the evidence. Parts that
// have no data are not there.

import { element, present } from './elements';
import type { PageData } from './model';
import { blocksOf, errorsOf, memoryOf } from './parts/blocks';
import { comparedOf, contentsOf, legendOf } from './parts/choice';
import { answerOf, capacityOf, findingsOf, variantsOf, verdictsOf } from './parts/conclusion';
import { factorsOf } from './parts/factors';
import { assumptionsOf, machineOf, methodOf, planOf, repeatOf, whyOf } from './parts/ground';
import { timesOf } from './parts/times';
import { trialOf } from './parts/trial';
import { View } from './view';

/** All that stands in the body. */
export function pageOf(data: PageData): HTMLElement[] {
  const view = new View(data.variants.length, data.verdicts.map(({ baseline, candidate }) => [baseline, candidate] as const));
  const conclusion = present([answerOf(data), findingsOf(data, true), verdictsOf(data), capacityOf(data), whyOf(data), findingsOf(data, false), variantsOf(data)]);
  const pictures = present([blocksOf(data, view), timesOf(data, view), trialOf(data), factorsOf(data), memoryOf(data), errorsOf(data)]);
  const ground = present([assumptionsOf(data), methodOf(data), machineOf(data), planOf(data), repeatOf(data)]);
  const legend = pictures.length > 0 ? legendOf(data, view) : null;
  const evidence = element('div', { class: 'evidence' }, legend, legend === null ? null : comparedOf(data, view), ...pictures);
  return [
    element('a', { class: 'skip', href: '#answer' }, 'To the answer'),
    contentsOf([['Summary', conclusion], ['Evidence', pictures], ['Method', ground]]),
    element('main', {}, ...conclusion, evidence, ...ground),
    element('footer', {}, `Drawn by Proofload ${data.proofload} from its record. This file is all there is to it: it loads nothing.`),
  ];
}
