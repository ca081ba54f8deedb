// What a reader chooses: a part of the page from the contents, the variants that the pictures show, and two of them to compare.

import { button, element, paragraph, type Child } from '../elements';
import { swatch } from '../looks';
import type { PageData } from '../model';
import { grouped } from '../numbers';
import { filterOf, tableOf } from '../tables';
import type { View } from '../view';

/** A link to each part that is there, in groups; that of the uppermost part in sight is marked. */
export function contentsOf(groups: readonly (readonly [name: string, parts: readonly HTMLElement[]])[]): HTMLElement {
  const parts = groups.flatMap(([, parts]) => parts);
  const links = parts.map((part) => element('a', { href: `#${part.id}` }, part.id === 'answer' ? 'Answer' : (part.querySelector('h2')?.textContent ?? '')));
  const seen = new Set<Element>();
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) isIntersecting ? seen.add(target) : seen.delete(target);
    const current = parts.findIndex((part) => seen.has(part));
    links.forEach((link, index) => (index === current ? link.setAttribute('aria-current', 'true') : link.removeAttribute('aria-current')));
  }, { rootMargin: '-15% 0px -60% 0px' });
  parts.forEach((part) => watcher.observe(part));
  const lists = groups.flatMap(([name, own]) => {
    const list = element('ul', { 'aria-label': name }, ...own.map((part) => element('li', {}, links[parts.indexOf(part)] ?? null)));
    return own.length === 0 ? [] : [element('p', { class: 'group', 'aria-hidden': 'true' }, name), list];
  });
  return element('nav', { class: 'contents', 'aria-label': 'Contents' }, element('p', { class: 'brand' }, 'Proofload'), ...lists);
}

const SWITCHES_AT_FIRST = 12;

/** A switch for each variant, and a choice of two to compare. Its marks are those in the pictures. */
export function legendOf({ variants }: PageData, view: View): HTMLElement | null {
  if (variants.length < 2) return null;
  const names = variants.map(({ name }) => name);
  const [switches, filter] = switchesOf(names, view);
  // Of two variants there is nothing to choose.
  const pair = names.length > 2 ? pairOf(names, view) : null;
  const bar = element('div', { class: 'bar controls' }, headOf(names, view), filter, pair);
  return element('div', { class: 'legend', role: 'region', 'aria-label': 'Variants in the charts' }, bar, switches);
}

function headOf(names: readonly string[], view: View): HTMLElement {
  const said = element('span', { role: 'status' });
  const all = [...names.keys()];
  const whole = button('All on', () => view.setHidden(all, false));
  const none = button('All off', () => view.setHidden(all, true));
  view.follow(() => {
    const shown = all.filter((variant) => !view.hidden(variant)).length;
    said.textContent = `In the charts: ${shown === all.length ? 'all' : `${grouped(shown)} of ${grouped(all.length)}`} variants`;
    whole.hidden = shown === all.length;
    none.hidden = shown === 0 || all.length <= 4;
  });
  return element('div', { class: 'head controls' }, said, whole, none);
}

function switchesOf(names: readonly string[], view: View): [HTMLElement, HTMLElement | null] {
  const switches = names.map((name, variant) => {
    const made = button(swatch(variant), () => view.setHidden([variant], !view.hidden(variant)), { title: name });
    made.append(element('span', { class: 'name' }, name));
    return made;
  });
  const filter = filterOf({ elements: switches, texts: names, called: 'variants', first: SWITCHES_AT_FIRST, keeps: (variant) => !view.hidden(variant) });
  view.follow(() => {
    switches.forEach((one, variant) => one.setAttribute('aria-pressed', String(!view.hidden(variant))));
    filter?.draw();
  });
  return [element('div', { class: 'switches', role: 'group', 'aria-label': 'Show or hide a variant' }, ...switches), filter?.host ?? null];
}

/** Two lists to choose from. What is compared is the first with the second. */
function pairOf(names: readonly string[], view: View): HTMLElement {
  const list = (label: string): HTMLSelectElement => {
    const options = names.map((name, variant) => element('option', { value: variant }, name));
    return element('select', { 'aria-label': `${label} this variant` }, element('option', { value: -1 }, 'choose …'), ...options);
  };
  const lists = [list('Compare'), list('with')] as const;
  const chosen = (): [number, number] => [Number(lists[1].value), Number(lists[0].value)];
  const whole = ([baseline, candidate]: [number, number]): boolean => baseline >= 0 && candidate >= 0 && baseline !== candidate;
  for (const one of lists) {
    one.addEventListener('change', () => {
      const pair = chosen();
      if (whole(pair) || view.pair !== null) view.setPair(whole(pair) ? pair : null);
    });
  }
  const end = button('End comparison', () => view.setPair(null));
  view.follow(() => {
    end.hidden = view.pair === null;
    if (view.pair === null && whole(chosen())) lists.forEach((one) => (one.value = '-1'));
  });
  const word = (text: string): HTMLElement => element('span', { 'aria-hidden': 'true' }, text);
  return element('div', { class: 'compare controls' }, word('Compare'), lists[0], word('with'), lists[1], end);
}

/** Two variants side by side, once two are chosen. It computes no difference: only what was planned is judged. */
export function comparedOf(data: PageData, view: View): HTMLElement {
  const host = element('div', { class: 'compared', 'aria-live': 'polite' });
  view.follow(() => host.replaceChildren(...(view.pair === null ? [] : sideBySide(data, ...view.pair))));
  return host;
}

function sideBySide({ variants, verdicts, figures }: PageData, baseline: number, candidate: number): Exclude<Child, null>[] {
  const pair = [candidate, baseline];
  const name = (variant: number): string => variants[variant]?.name ?? '';
  const heading = element('h3', {}, swatch(candidate), name(candidate), element('span', { class: 'faint' }, ' vs '), swatch(baseline), name(baseline));
  // Either way round.
  const about = verdicts.filter((one) => pair.includes(one.baseline) && pair.includes(one.candidate));
  const said = about.map(({ word, comparison, detail }) => paragraph(`${word}: ${comparison}: ${detail}`));
  if (said.length === 0) said.push(paragraph('The plan does not compare these two, so there is no verdict about them.', 'faint'));
  // The figures' table turned: a row for each figure, a column for each of the two.
  const rows = figures.columns.map((column, index) => [column, ...pair.map((variant) => figures.rows[variant]?.[index] ?? '–')]);
  const table = { heading: 'The two side by side', columns: ['', ...pair.map(name)], names: 1, rows: rows.slice(figures.names) };
  return [heading, ...said, tableOf(table)];
}
