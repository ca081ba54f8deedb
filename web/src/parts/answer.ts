// The top of the page: the question, and the answer for somebody who reads nothing else.

import { element, present } from '../elements';
import type { PageData, State } from '../model';
import { moment, share } from '../numbers';

/** What is said of a state before the answer, with a sign that needs no colour. */
const STATES: Record<State, readonly [sign: string, words: string]> = {
  decided: ['✓', 'Decided'],
  open: ['…', 'Still open'],
  void: ['✕', 'Void'],
  measured: ['–', 'Measured, nothing is compared'],
  broken: ['!', 'The run broke off'],
};

export function answerOf(data: PageData): HTMLElement {
  const [sign, words] = STATES[data.state];
  const state = element('p', { class: 'state' }, element('span', { class: 'sign', 'aria-hidden': 'true' }, sign), words);
  return element(
    'section',
    { id: 'answer', 'aria-labelledby': 'question', tabindex: -1, class: `answer ${data.state}` },
    element('h1', { id: 'question' }, data.title),
    element('div', { class: 'said' }, state, element('p', { class: 'sentence' }, /[.!?…]$/.test(data.answer) ? data.answer : `${data.answer}.`)),
    element('p', { class: 'faint facts' }, ...factsOf(data)),
  );
}

function factsOf(data: PageData): HTMLElement[] {
  const compares = data.verdicts.length > 0;
  const facts = [
    data.experiment === data.title ? null : `Experiment ${data.experiment}`,
    moment(data.created),
    compares ? `differences below ${share(data.margin)} do not matter here` : null,
    `Proofload ${data.proofload}`,
  ];
  return present(facts).map((fact) => element('span', {}, fact));
}
