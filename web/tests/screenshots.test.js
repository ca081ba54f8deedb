// How the page looks, held against kept pictures. `UPDATE_SCREENSHOTS=1` keeps new ones; look at them before they are committed.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import pixelmatch from 'pixelmatch';
import { PNG } from 'pngjs';
import { launched, opened } from './browser.js';

const KEPT = new URL('./screenshots/', import.meta.url);
const MADE = new URL('../dist/screenshots/', import.meta.url);
/** Browsers differ in how they smooth edges; a part that moved or vanished is far more. */
const DIFFERENT_MAX = 0.03;

const VIEWS = [
  { name: 'wide', record: 'factors', width: 1440, height: 860 },
  { name: 'evidence-dark', record: 'factors', width: 1440, height: 1000, colorScheme: 'dark', at: '.legend' },
  { name: 'void', record: 'void', width: 768, height: 1000 },
  { name: 'phone', record: 'sound', width: 360, height: 1000 },
  { name: 'phone-times-dark', record: 'latency', width: 360, height: 1000, colorScheme: 'dark', at: '#times' },
];

let browser;
before(async () => (browser = await launched()));
after(() => browser.close());

describe('the page looks as it did', () => {
  for (const view of VIEWS) {
    it(view.name, async () => {
      const made = await picture(view);
      const kept = new URL(`${view.name}.png`, KEPT);
      if (process.env.UPDATE_SCREENSHOTS) writeFileSync(kept, made);
      const different = differenceOf(made, readFileSync(kept), view.name);
      assert.ok(different <= DIFFERENT_MAX, `${(different * 100).toFixed(1)} % of it differs: see web/dist/screenshots/${view.name}.png`);
    });
  }
});

async function picture({ record, at, name, ...settings }) {
  const { page, end } = await opened(browser, record, { ...settings, before: sameFonts });
  await page.evaluate(() => document.fonts.ready);
  if (at) await page.locator(at).first().evaluate((one) => one.scrollIntoView({ block: 'start', behavior: 'instant' }));
  // Charts draw in the next frame.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const made = await page.screenshot({ animations: 'disabled', caret: 'hide' });
  await end();
  return made;
}

/** The same fonts on every machine, through the page's own variables: its policy lets in no other style. Charts are drawn after that. */
function sameFonts() {
  addEventListener('DOMContentLoaded', () => {
    document.documentElement.style.setProperty('--sans', '"DejaVu Sans"');
    document.documentElement.style.setProperty('--mono', '"DejaVu Sans Mono"');
  });
}

/** The share of pixels that differ. */
function differenceOf(made, kept, name) {
  const [one, other] = [PNG.sync.read(made), PNG.sync.read(kept)];
  const { width, height } = other;
  if (one.width !== width || one.height !== height) return 1;
  const shown = new PNG({ width, height });
  const share = pixelmatch(one.data, other.data, shown.data, width, height, { threshold: 0.2 }) / (width * height);
  if (share > DIFFERENT_MAX) {
    mkdirSync(MADE, { recursive: true });
    writeFileSync(new URL(`${name}.png`, MADE), made);
    writeFileSync(new URL(`${name}-difference.png`, MADE), PNG.sync.write(shown));
  }
  return share;
}
