// Which variants the pictures show: a switch for each, and a choice of two to compare. Its marks are those in the pictures.

import { button, element, type Child } from '../elements';
import { filterOf } from '../filter';
import { swatch } from '../charts/index';
import type { PageData } from '../model';
import { count } from '../numbers';
import type { Choice } from '../view';

const SWITCHES_AT_FIRST = 12;

export function legendOf(data: PageData, view: Choice): HTMLElement | null {
  if (data.variants.length < 2) return null;
  const host = element('div', { class: 'legend', role: 'region', 'aria-label': 'Variants in the pictures' });
  const [switches, filter] = switchesOf(data, view);
  host.append(element('div', { class: 'bar controls' }, headOf(data, view), filter, comparisonOf(data, view)), switches);
  return host;
}

function headOf(data: PageData, view: Choice): HTMLElement {
  const said = element('span', { role: 'status' });
  const all = data.variants.map((_, variant) => variant);
  const whole = button('All on', () => view.setAll(all, false));
  const none = button('All off', () => view.setAll(all, true));
  const draw = (): void => {
    const shown = all.filter((variant) => !view.hidden(variant)).length;
    said.textContent = shown === all.length ? 'In the pictures: all variants' : `In the pictures: ${count(shown)} of ${count(all.length)} variants`;
    whole.hidden = shown === all.length;
    none.hidden = shown === 0 || all.length <= 4;
  };
  view.onChange(draw);
  draw();
  return element('div', { class: 'head controls' }, said, whole, none);
}

function switchesOf(data: PageData, view: Choice): [HTMLElement, HTMLElement | null] {
  const switches = data.variants.map(({ name }, variant) => {
    const label = element('span', { class: 'name' }, name);
    const made = button(null, () => view.setHidden(variant, !view.hidden(variant)), { title: name });
    made.append(swatch(variant), label);
    return made;
  });
  const texts = data.variants.map(({ name }) => name);
  const filter = filterOf({ elements: switches, texts, called: 'variants', first: SWITCHES_AT_FIRST, keeps: (variant) => !view.hidden(variant) });
  const draw = (): void => {
    switches.forEach((one, variant) => one.setAttribute('aria-pressed', String(!view.hidden(variant))));
    filter?.draw();
  };
  view.onChange(draw);
  draw();
  return [element('div', { class: 'switches', role: 'group', 'aria-label': 'Show or hide a variant' }, ...switches), filter?.host ?? null];
}

/** Two lists to choose from. What is compared is the second against the first. */
function comparisonOf(data: PageData, view: Choice): HTMLElement {
  const lists = ['Compare', 'with'].map((label) => {
    const options: Child[] = [element('option', { value: -1 }, 'choose …')];
    options.push(...data.variants.map(({ name }, variant) => element('option', { value: variant }, name)));
    const select = element('select', { 'aria-label': `${label} this variant` }, ...options);
    select.addEventListener('change', choose);
    return select;
  });
  const [candidates, baselines] = lists as [HTMLSelectElement, HTMLSelectElement];
  function choose(): void {
    const [candidate, baseline] = [Number(candidates.value), Number(baselines.value)];
    if (candidate >= 0 && baseline >= 0 && candidate !== baseline) view.setPair([baseline, candidate]);
    else if (view.pair !== null) view.setPair(null);
  }
  const end = button('End comparison', () => view.setPair(null));
  const draw = (): void => {
    end.hidden = view.pair === null;
    if (view.pair === null && candidates.value !== '-1' && baselines.value !== '-1' && candidates.value !== baselines.value) {
      for (const list of lists) list.value = '-1';
    }
  };
  view.onChange(draw);
  draw();
  return element('div', { class: 'compare controls' }, element('span', { 'aria-hidden': 'true' }, 'Compare'), candidates, element('span', { 'aria-hidden': 'true' }, 'with'), baselines, end);
}
