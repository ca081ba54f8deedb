// How the page makes its elements. Text from a record goes in as text alone, never as markup: nothing here takes markup.

export type Child = Node | string | null;
type Attributes = Record<string, string | number | boolean | null>;

/** An element with attributes and children. Attributes that are `null` or `false`, and children that are `null`, are left out. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
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

export function paragraph(text: string, kind: string | null = null): HTMLElement {
  return element('p', { class: kind }, text);
}
