// The flame page in a real browser.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { barriers, launched, opened, overflow } from './browser.js';

let browser;
before(async () => (browser = await launched()));
after(() => browser.close());

describe('the flame page', () => {
  it('draws, and a click on a frame widens it until there is a click beside', async () => {
    const { page, end } = await opened(browser, 'flame');
    const graph = page.locator('svg').first();
    const frame = graph.locator('g', { hasText: 'pbkdf2Sync' }).first().locator('rect').first();
    const width = () => frame.evaluate((rect) => Number(rect.getAttribute('width')));
    const before = await width();
    await frame.click();
    assert.ok((await width()) > 1.01 * before && (await width()) >= 1170, `${before} to ${await width()}`);
    await graph.click({ position: { x: 5, y: 5 } });
    assert.ok(Math.abs((await width()) - before) < 1);
    assert.deepEqual(await barriers(page), []);
    await end();
  });

  it('fits a phone', async () => {
    const { page, end } = await opened(browser, 'flame', { width: 360, height: 780, colorScheme: 'dark' });
    assert.equal(await overflow(page), 0);
    assert.deepEqual(await barriers(page), []);
    await end();
  });

  it('shows functions whose names are markup as text', async () => {
    const { page, end } = await opened(browser, 'flame-hostile');
    const { images, scripts, ran } = await page.evaluate(() => ({
      images: document.images.length,
      scripts: document.scripts.length,
      ran: 'hostile' in globalThis,
    }));
    assert.deepEqual([images, scripts, ran], [0, 1, false]);
    await end();
  });
});
