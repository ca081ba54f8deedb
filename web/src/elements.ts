// How the page makes its elements. Text from a record goes in as text alone, never as markup: nothing here takes markup, and
// nothing sets a style attribute, so that the page's policy forbids both.

export type Child = Node | string | null;
type Attributes = Record<string, string | number | boolean | null>;

/** An element with attributes and children. Attributes that are `null` or `false`, and children that are `null`, are left out. */
export function element<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[Tag] {
  return filled(document.createElement(tag), attributes, children);
}

/** Likewise of a drawing. */
export function svg<Tag extends keyof SVGElementTagNameMap>(tag: Tag, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[Tag] {
  return filled(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function filled<Made extends Element>(made: Made, attributes: Attributes, children: readonly Child[]): Made {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) made.setAttribute(name, value === true ? '' : String(value));
  }
  made.append(...present(children));
  return made;
}

/** Those of some children that are there. */
export function present<T>(children: readonly (T | null)[]): T[] {
  return children.filter((child): child is T => child !== null);
}

/** A button that says what it does. */
export function button(text: Child, act: () => void, attributes: Attributes = {}): HTMLButtonElement {
  const made = element('button', { type: 'button', ...attributes }, text);
  made.addEventListener('click', act);
  return made;
}

/** A part of the page with a heading, to which the contents lead. */
export function section(id: string, heading: string, ...children: Child[]): HTMLElement {
  const title = element('h2', { id: `${id}-heading` }, heading);
  return element('section', { id, 'aria-labelledby': `${id}-heading`, tabindex: -1 }, title, ...children);
}

/** What is folded away until somebody wants it; paper has it unfolded. */
export function fold(summary: Child, ...children: Child[]): HTMLDetailsElement {
  return element('details', {}, element('summary', {}, summary), ...children);
}

/** Names with what they stand for, one below the other. */
export function pairs(list: readonly (readonly [string, Child])[]): HTMLElement {
  const rows = list.map(([name, text]) => element('div', {}, element('dt', {}, name), element('dd', {}, text)));
  return element('dl', { class: 'pairs' }, ...rows);
}

/** Prose, in which pairs of backticks mark code. */
export function prose(text: string): Child[] {
  const parts = text.split('`');
  // A backtick without a partner stays.
  if (parts.length % 2 === 0) parts.push(parts.splice(-2).join('`'));
  return parts.map((part, index) => (index % 2 === 1 ? element('code', {}, part) : part));
}

export function paragraph(text: string, kind: string | null = null): HTMLElement {
  return element('p', { class: kind }, ...prose(text));
}

/** A sign by which something is known without its colour. Screen readers leave it out: the word stands beside it. */
export function sign(text: string): HTMLElement {
  return element('span', { class: 'sign', 'aria-hidden': 'true' }, text);
}

/** A command to take away, with a button that copies it. Where a browser forbids that it is selected, so that a key copies it. */
export function command(text: string): HTMLElement {
  const code = element('code', {}, text);
  const status = element('span', { role: 'status', class: 'faint' });
  const copied = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      status.textContent = 'Copied';
    } catch {
      getSelection()?.selectAllChildren(code);
      // Deprecated, and the only way in browsers that keep the clipboard from files.
      status.textContent = document.execCommand('copy') ? 'Copied' : 'Selected: Ctrl+C copies it';
    }
  };
  const copy = button('Copy', () => void copied(), { 'aria-label': `Copy ${text}` });
  return element('div', { class: 'command' }, element('pre', {}, code), copy, status);
}

/** Calls `act` with `true` before the page is printed, and with `false` afterwards. */
export function onPaper(act: (paper: boolean) => void): void {
  addEventListener('beforeprint', () => act(true));
  addEventListener('afterprint', () => act(false));
  // Where a browser shows what would be printed, it tells nothing else.
  matchMedia('print').addEventListener('change', ({ matches }) => act(matches));
}
