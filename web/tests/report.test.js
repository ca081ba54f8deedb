// The report page of kept records in a real browser: what people do with it works, and keeps nobody out.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { barriers, launched, opened, overflow } from './browser.js';

const named = (variable) => (process.env[variable] ?? '').split(/\s+/).filter((name) => name);
/** Made-up records, and those of the shipped experiments. */
const RECORDS = ['sound', 'factors', 'latency', 'void', 'many', 'hostile', ...named('PROOFLOAD_STUDIES')];
/** Pages of real records, by name, where `scripts/test-page` was given some. */
const REAL = named('PROOFLOAD_PAGES');
const WIDTHS = [1440, 768, 360];

let browser;
before(async () => (browser = await launched()));
after(() => browser.close());

/** Does something with a page, which must then have stayed quiet. */
async function on(name, settings, act) {
  const { page, end } = await opened(browser, name, settings);
  try {
    await act(page);
  } finally {
    await end();
  }
}

describe('every report', () => {
  for (const name of REAL.length ? REAL : RECORDS) {
    it(`${name}: has its headings in order, fits each width, and axe finds nothing serious in the light and in the dark`, async () => {
      await on(name, {}, async (page) => {
        const levels = await page.locator('h1, h2, h3').evaluateAll((all) => all.map(({ tagName }) => Number(tagName[1])));
        assert.ok(levels[0] === 1 && levels.lastIndexOf(1) === 0, `${levels}`);
        levels.slice(1).forEach((level, index) => assert.ok(level <= levels[index] + 1, `after h${levels[index]} comes h${level}`));
        for (const landmark of ['main', 'nav', 'footer']) assert.equal(await page.locator(`body > ${landmark}`).count(), 1);
        for (const width of WIDTHS) {
          await page.setViewportSize({ width, height: 900 });
          assert.equal(await overflow(page), 0, `wider than ${width} px`);
        }
        assert.deepEqual(await barriers(page), []);
        await page.emulateMedia({ colorScheme: 'dark' });
        assert.deepEqual(await barriers(page, ['color-contrast']), [], 'in the dark');
      });
    });
  }
});

describe('a report', () => {
  it('tells the answer before everything else', async () => {
    await on('sound', { width: 360, height: 780 }, async (page) => {
      assert.ok(await page.locator('.sentence').evaluate((one) => one.getBoundingClientRect().bottom < innerHeight));
      assert.match(await page.locator('#verdicts table').innerText(), /FASTER.*(against|vs)/is);
    });
    await on('void', {}, async (page) => {
      const order = await page.locator('main > section').evaluateAll((all) => all.map(({ id }) => id));
      assert.deepEqual(order.slice(0, 2), ['answer', 'voids']);
      assert.equal(await page.locator('#verdicts .span').count(), 0, 'no number where there is no conclusion');
    });
  });

  it('has the words of an axis where its places are, at each width', async () => {
    await on('sound', {}, async (page) => {
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 900 });
        const [at, left, right] = await page.locator('.judged').evaluate((table) => {
          const word = [...table.querySelectorAll('tfoot text')].find(({ textContent }) => textContent === 'no change').getBoundingClientRect();
          return [table.querySelector('.no-change').getBoundingClientRect().left, word.left, word.right];
        });
        assert.ok(left - 2 <= at && at <= right + 2, `the line is at ${at}, its words from ${left} to ${right}, at ${width} px`);
      }
    });
  });

  it('hides a variant and compares two', async () => {
    await on('factors', {}, async (page) => {
      const shown = () => page.locator('#blocks .plot-area').nth(1).getAttribute('data-lines').then(Number);
      const all = await shown();
      const switches = page.locator('.switches button');
      await switches.first().click();
      assert.equal(await switches.first().getAttribute('aria-pressed'), 'false');
      assert.equal(await shown(), all - 1);
      await page.getByRole('button', { name: 'All off' }).click();
      await page.locator('#blocks .pictures').getByText('Nothing to show').first().waitFor();
      await page.getByRole('button', { name: 'All on' }).click();
      const [candidate, baseline] = await page.locator('.compare select').all();
      await candidate.selectOption({ index: 4 });
      await baseline.selectOption({ index: 1 });
      assert.equal(await shown(), 2);
      assert.match(await page.locator('.compared').innerText(), /throughput/);
      await page.getByRole('button', { name: 'End comparison' }).click();
      assert.equal(await page.locator('.compared').innerText(), '');
      assert.equal(await shown(), all);
    });
  });

  it('shows figures under the pointer and the cursor, zooms, and shows all again', async () => {
    await on('latency', {}, async (page) => {
      const plot = page.locator('#times .plot').first();
      await plot.scrollIntoViewIfNeeded();
      const { x, y, width, height } = await plot.locator('.u-over').boundingBox();
      await page.mouse.move(x + width / 2, y + height / 2);
      assert.match(await plot.locator('.plot-tip').innerText(), /\d/);
      await page.mouse.down();
      await page.mouse.move(x + width * 0.8, y + height / 2, { steps: 4 });
      await page.mouse.up();
      const reset = plot.getByRole('button', { name: 'Show all again' });
      await reset.click();
      await reset.waitFor({ state: 'hidden' });
      await plot.locator('.plot-area').focus();
      await page.keyboard.press('+');
      await reset.waitFor({ state: 'visible' });
      await page.keyboard.press('ArrowRight');
      assert.match(await plot.locator('[aria-live]').innerText(), /\d/);
      await page.keyboard.press('0');
      await reset.waitFor({ state: 'hidden' });
    });
  });

  it('is walked through with arrow keys, from the first figure to the last', async () => {
    await on('factors', {}, async (page) => {
      for (const [part, least] of [['#blocks .pictures .plot', 10], ['#trial .plot', 3]]) {
        const plot = page.locator(part).first();
        await plot.locator('.plot-area').focus();
        const heard = new Set();
        for (let press = 0; press < 60; press += 1) {
          await page.keyboard.press('ArrowRight');
          heard.add(await plot.locator('[aria-live]').innerText());
        }
        assert.ok(heard.size >= least, `${heard.size} figures of ${part}`);
        await page.keyboard.press('End');
        assert.equal(await plot.locator('[aria-live]').innerText(), [...heard].at(-1), 'arrows get to the end');
      }
    });
  });

  it('is used with the keyboard alone', async () => {
    await on('factors', {}, async (page) => {
      await page.keyboard.press('Tab');
      assert.equal(await page.evaluate(() => document.activeElement.className), 'skip');
      await page.keyboard.press('Enter');
      assert.equal(await page.evaluate(() => document.activeElement.id), 'answer');
      assert.deepEqual(await unreached(page), []);
    });
  });

  it('has each picture as a table', async () => {
    await on('factors', {}, async (page) => {
      const behind = page.locator('.behind');
      const number = await behind.count();
      assert.ok(number >= 5);
      for (let index = 0; index < number; index += 1) {
        await behind.nth(index).locator('summary').click();
        await behind.nth(index).locator('tbody tr').first().waitFor();
      }
      assert.equal(await overflow(page), 0);
    });
  });

  it('puts the command into the clipboard, or selects it', async () => {
    await on('sound', { permissions: ['clipboard-read', 'clipboard-write'] }, async (page) => {
      const repeat = page.locator('#repeat .command').first();
      await repeat.getByRole('button').click();
      await repeat.getByText('Copied').waitFor();
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await repeat.locator('code').innerText());
    });
    await on('sound', {}, async (page) => {
      await page.evaluate(() => {
        navigator.clipboard.writeText = () => Promise.reject(new Error('not here'));
        document.execCommand = () => false;
      });
      const repeat = page.locator('#repeat .command').first();
      await repeat.getByRole('button').click();
      await repeat.getByText('Ctrl+C').waitFor();
      assert.equal(await page.evaluate(() => String(getSelection())), await repeat.locator('code').innerText());
    });
  });

  it('is unfolded on paper, and folded again', async () => {
    await on('void', {}, async (page) => {
      const folded = page.locator('.finding details p').first();
      assert.equal(await folded.isVisible(), false);
      await page.emulateMedia({ media: 'print' });
      await folded.waitFor({ state: 'visible' });
      // The switches stay, as the key of the pictures.
      assert.equal(await page.locator(':is(button, select, input):visible:not(.switches > *)').count(), 0);
      assert.ok((await page.pdf({ format: 'A4', preferCSSPageSize: true })).length > 10_000);
      await page.emulateMedia({ media: 'screen' });
      await folded.waitFor({ state: 'hidden' });
    });
  });

  it('finds one of many variants', async () => {
    await on('many', { width: 768 }, async (page) => {
      const rows = page.locator('#variants tbody tr:visible');
      assert.ok((await rows.count()) < 30);
      await page.locator('#variants input').fill('variant 61');
      assert.equal(await rows.count(), 1);
      await page.locator('.legend input').fill('variant 61');
      const found = page.locator('.switches button:visible');
      assert.equal(await found.count(), 1);
      await found.click();
      assert.equal(await found.getAttribute('aria-pressed'), 'true');
    });
  });

  it('shows names that are markup as text', async () => {
    await on('hostile', {}, async (page) => {
      const { images, scripts, ran, text } = await page.evaluate(() => ({
        images: document.images.length,
        scripts: document.scripts.length,
        ran: 'hostile' in globalThis,
        text: document.querySelector('main').textContent,
      }));
      assert.deepEqual([images, scripts, ran], [0, 2, false]);
      assert.match(await page.title(), /<\/script>/);
      for (const name of ['</script><script>', '<img src=x onerror=', '{{data}}']) assert.ok(text.includes(name), `${name} is told as it is`);
    });
  });

  it('opens with much in it', async (test) => {
    await on('largest', {}, async (page) => {
      const { duration } = await page.evaluate(() => {
        const { domContentLoadedEventEnd: duration } = performance.getEntriesByType('navigation')[0];
        return { duration };
      });
      assert.ok((await page.locator('.plot canvas').count()) > 0);
      test.diagnostic(`the largest page was drawn after ${Math.round(duration)} ms`);
    });
  });
});

/** What of the page can be pressed or chosen and has not got the focus by the Tab key. */
async function unreached(page) {
  const wanted = await page.evaluate(() => {
    const all = [...document.querySelectorAll('a[href], button, select, input, summary, [tabindex="0"]')];
    const seen = all.filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.disabled);
    globalThis.unreached = new Set(seen);
    addEventListener('focusin', ({ target }) => globalThis.unreached.delete(target), true);
    document.activeElement.blur();
    return seen.length;
  });
  for (let press = 0; press < wanted + 5; press += 1) await page.keyboard.press('Tab');
  return page.evaluate(() => [...globalThis.unreached].map((one) => one.outerHTML.slice(0, 160)));
}
