// Reads the data that the page carries, and draws it. What cannot be read is said where the report would stand.

import './style/page.css';
import './style/parts.css';
import './charts/charts.css';
import './style/narrow.css';
import './style/paper.css';
import { element, paragraph } from './elements';
import type { PageData } from './model';
import { pageOf } from './page';
import { unfoldForPaper } from './paper';

const VERSION = 1;

function draw(): void {
  const text = document.getElementById('data')?.textContent ?? '';
  const data = JSON.parse(text) as PageData;
  if (data.page_version !== VERSION) throw new Error(`its data are of version ${data.page_version}, and it reads ${VERSION}`);
  document.body.prepend(...pageOf(data));
  unfoldForPaper();
}

try {
  draw();
} catch (error) {
  document.body.prepend(
    element(
      'main',
      { role: 'alert' },
      element('h1', {}, 'This report cannot be drawn'),
      paragraph(`The file is not whole, or was changed: ${error instanceof Error ? error.message : String(error)}.`),
      paragraph('Make it again from its record: proofload report RECORD --html'),
    ),
  );
  throw error;
}
