// The flame page in a real browser.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { barriers, launched, opened, overflow } from './browser.js';

let browser;
before(async () => (browser = await launched()));
after(() => browser.close());

describe('the flame page', () => {
  it('draws, searches, zooms and compares', async () => {
    const { page, end } = await opened(browser, 'flame');
    assert.ok((await page.locator('.chart canvas').count()) > 0);
    const drawn = await page.locator('.chart canvas').first().evaluate((canvas) => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size);
    assert.ok(drawn > 8, 'something is on the canvas');
    await page.keyboard.press('/');
    await page.keyboard.type('pbkdf2');
    await page.locator('#result').getByText(/\d/).waitFor();
    await page.keyboard.press('Enter');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.locator('.path li').first().waitFor();
    await page.keyboard.press('Escape');
    await page.locator('.path li').first().waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'A and B', exact: true }).click();
    assert.equal(await page.locator('.chart canvas').count(), 2);
    assert.ok((await page.locator('.functions tbody tr').count()) > 0);
    assert.deepEqual(await barriers(page), []);
    await end();
  });

  it('fits a phone in the dark', async () => {
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
    assert.deepEqual([images, scripts, ran], [0, 2, false]);
    assert.ok((await page.locator('#functions').innerText()).includes('<img src=x onerror='));
    await end();
  });
});
