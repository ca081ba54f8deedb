// Effects as rows: what each factor does on average, and how much that depends on another.

import type { EffectLine, PageData } from '../model';
import type { View } from '../view';
import { empty } from './empty';
import { forest, type Group } from './forest';
import { framed } from './frame';

export function effectsPlot(data: PageData, view: View): HTMLElement {
  const { effects } = data;
  return framed(view, {
    label: effects?.heading ?? 'Effects',
    summary: () => `${(effects?.lines ?? []).slice(0, 6).map((one) => `${one.label}: ${one.word} ${one.detail}`.trim()).join('. ')}.`,
    zooms: false,
    draw: ({ width }) => {
      if (effects === null || effects.lines.length === 0) return empty(width, effects?.note ?? 'This experiment has no two factors.');
      return forest(effectGroups(effects.lines, direction(data)), data.margin, width);
    },
  });
}

/** Main effects, then interactions; what is void shows no number even where the record should have one. */
export function effectGroups(lines: readonly EffectLine[], moreIsBetter: boolean | null): Group[] {
  const rows = (wanted: boolean): Group['rows'] =>
    lines
      .filter(({ interaction }) => interaction === wanted)
      .map(({ label, outcome, word, detail, ratio }) => ({ label, outcome, word, detail, ratio: outcome === 'void' || outcome === 'no_success' ? null : ratio }));
  const groups: Group[] = [
    { heading: 'on average', moreIsBetter, rows: rows(false) },
    // That an effect depends on another is neither better nor worse.
    { heading: 'depends on the other', moreIsBetter: null, rows: rows(true) },
  ];
  return groups.filter((group) => group.rows.length > 0);
}

/** Effects do not say which way is better; the verdicts do, where all agree. */
function direction({ verdicts }: PageData): boolean | null {
  const first = verdicts[0]?.more_is_better ?? null;
  return verdicts.every(({ more_is_better }) => more_is_better === first) ? first : null;
}
