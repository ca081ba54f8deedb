// A real browser with a page in it, and what may not happen there: a message on the console, a request to anywhere.

import assert from 'node:assert/strict';
import { accessSync, constants, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const COMMANDS = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const PAGES = fileURLToPath(new URL('../dist/pages/', import.meta.url));
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The browser of this machine; `PROOFLOAD_CHROMIUM` names another. */
function executable() {
  const named = process.env.PROOFLOAD_CHROMIUM;
  const folders = (process.env.PATH ?? '').split(delimiter);
  const candidates = named ? [named] : COMMANDS.flatMap((command) => folders.map((folder) => join(folder, command)));
  const found = candidates.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  assert.ok(found, 'no Chromium here: scripts/setup installs it, or PROOFLOAD_CHROMIUM names one');
  return found;
}

/** Drawn alike on every machine: no hints of fonts, one colour space. */
const ALIKE = ['--font-render-hinting=none', '--disable-lcd-text', '--force-color-profile=srgb', '--hide-scrollbars', '--disable-gpu'];

export function launched() {
  // Root may not use Chromium's sandbox; what is opened here we made ourselves.
  return chromium.launch({ executablePath: executable(), args: ALIKE, chromiumSandbox: process.getuid?.() !== 0 });
}

/** Where the page of a kept record lies. */
export function urlOf(name) {
  return pathToFileURL(join(PAGES, `${name}.html`)).href;
}

/** A page that has been opened, with all that it did and should not have done; `before` runs in it before its own script. */
export async function opened(browser, name, { width = 1440, height = 900, before, ...settings } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, reducedMotion: 'reduce', ...settings });
  const page = await context.newPage();
  if (before) await page.addInitScript(before);
  const faults = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && faults.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('request', (request) => request.url().split('#')[0] !== urlOf(name) && faults.push(`request: ${request.url()}`));
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(urlOf(name));
  return { page, faults, end: () => ended(context, faults) };
}

async function ended(context, faults) {
  await context.close();
  assert.deepEqual(faults, []);
}

/** What axe finds that keeps somebody out, by all its rules or some. */
export async function barriers(page, rules) {
  await page.evaluate(AXE);
  const options = { resultTypes: ['violations'], ...(rules ? { runOnly: rules } : {}) };
  const found = await page.evaluate((settings) => globalThis.axe.run(document, settings), options);
  const grave = found.violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  return grave.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(' | ')}`);
}

/** How much wider than the window the page is, in pixels. */
export function overflow(page) {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}
