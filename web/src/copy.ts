// A command to take away, with a button that copies it. Where a browser forbids that, as some do for files, it is selected, so
// that a key copies it.

import { button, element } from './elements';

export function command(text: string): HTMLElement {
  const code = element('code', {}, text);
  const status = element('span', { role: 'status', class: 'faint' });
  const copy = button('Copy', () => void copied(code).then((said) => (status.textContent = said)), { 'aria-label': `Copy ${text}` });
  return element('div', { class: 'command' }, element('pre', {}, code), copy, status);
}

async function copied(code: HTMLElement): Promise<string> {
  try {
    await navigator.clipboard.writeText(code.textContent);
    return 'Copied';
  } catch {
    select(code);
    // Deprecated, and the only way in browsers that keep the clipboard from files.
    return document.execCommand('copy') ? 'Copied' : 'Selected: Ctrl+C copies it';
  }
}

function select(code: HTMLElement): void {
  const range = document.createRange();
  range.selectNodeContents(code);
  const selection = getSelection();
  selection?.removeAllRanges();
  selection?.addRange(range);
}
