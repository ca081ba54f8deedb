// Reads the data that the page carries, and draws it. What cannot be read is said where the report would stand.

import './style/page.css';
import './style/parts.css';
import './style/charts.css';
import './style/media.css';
import { element, onPaper, paragraph } from './elements';
import type { PageData } from './model';
import { pageOf } from './page';

/** Paper is white and has no folds. Tables behind pictures stay away: the picture is on the paper. */
function adaptToPaper(): void {
  let opened: HTMLDetailsElement[] = [];
  onPaper((paper) => {
    document.documentElement.classList.toggle('paper', paper);
    if (paper) opened.push(...document.querySelectorAll<HTMLDetailsElement>('details:not([open]):not(.behind)'));
    for (const one of opened) one.open = paper;
    if (!paper) opened = [];
  });
}

try {
  const data = JSON.parse(document.getElementById('data')?.textContent ?? '') as PageData;
  // Charts look at the colours of paper once these are there.
  adaptToPaper();
  document.body.prepend(...pageOf(data));
} catch (error) {
  document.body.prepend(
    element(
      'main',
      { role: 'alert' },
      element('h1', {}, 'This report cannot be drawn'),
      paragraph(`The file is not whole, or was changed: ${error instanceof Error ? error.message : String(error)}.`),
      paragraph('Make it again from its record: proofload report RECORD --format html'),
    ),
  );
  throw error;
}
