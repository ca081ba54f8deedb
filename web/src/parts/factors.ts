// What each factor does on average, and what two of them do to each other.

import { effectsPlot, interactionPlot } from '../charts/index';
import { element, paragraph, section, type Child } from '../elements';
import type { Effects, Interaction, PageData, Table } from '../model';
import { Column } from '../numbers';
import { Chooser, pictureOf, type Picture } from '../picture';
import type { View } from '../view';
import { capital } from './blocks';

export function factorsOf(data: PageData, view: View): HTMLElement | null {
  const parts: Child[] = data.effects === null ? [] : effectsOf(data, data.effects, view);
  const interactions = data.interactions.map((one, index): Picture => ({
    heading: nameOf(one),
    notes: ['Parallel lines: what one factor does, it does whatever the other is. Means over trials and over the other factors.'],
    draw: () => interactionPlot(data, view, index),
    table: () => interactionTable(one),
  }));
  if (interactions.length > 0) parts.push(new Chooser('Interaction', interactions, data.interactions.map(nameOf)).host);
  return parts.length === 0 ? null : section('factors', 'Effects of factors', ...parts);
}

function effectsOf(data: PageData, effects: Effects, view: View): Child[] {
  const rows = effects.lines.map(({ word, detail, label }) => [label, word, detail]);
  const picture: Picture = {
    heading: effects.heading,
    notes: effects.note === null ? [] : [effects.note],
    draw: () => effectsPlot(data, view),
    table: () => ({ heading: '', columns: ['effect', 'verdict', 'estimate and interval'], names: 3, rows }),
  };
  if (effects.lines.length === 0) return effects.note === null ? [] : [paragraph(effects.note)];
  return [effects.lines.some(({ ratio }) => ratio !== null) ? pictureOf(picture) : element('div', {}, paragraph(effects.note ?? effects.heading))];
}

function nameOf({ metric, across, lines }: Interaction): string {
  return `${capital(metric)} by ${across[0]} and ${lines[0]}`;
}

function interactionTable({ unit, across, lines, values }: Interaction): Table {
  const column = new Column(unit, values.flat());
  const corner = column.head(`${lines[0]} \\ ${across[0]}`);
  const rows = lines[1].map((level, line) => [level, ...across[1].map((_, at) => column.cell(values[line]?.[at]))]);
  return { heading: '', columns: [corner, ...across[1]], names: 1, rows };
}
