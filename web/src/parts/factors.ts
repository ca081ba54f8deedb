// What each factor does on average, and what two of them do to each other.

import { judgedTable } from '../cells';
import type { Chart } from '../chart';
import { element, paragraph, section, type Child } from '../elements';
import type { Effects, Interaction, PageData } from '../model';
import { capital, figure } from '../numbers';
import { Chooser } from '../pictures';

const PARALLEL = 'Parallel lines: what one factor does, it does whatever the other is. Means over trials and over the other factors.';

export function factorsOf({ effects, interactions, margin }: PageData): HTMLElement | null {
  const parts: Child[] = effects === null ? [] : effectsOf(effects, margin);
  const pictures = interactions.map((one) => ({ heading: nameOf(one), notes: [PARALLEL], chart: () => interactionChart(one) }));
  if (pictures.length > 0) parts.push(new Chooser('Interaction', pictures, interactions.map(nameOf)).host);
  return parts.length === 0 ? null : section('factors', 'Effects of factors', ...parts);
}

function effectsOf({ heading, lines, note }: Effects, margin: number): Child[] {
  const said = note === null ? [] : [paragraph(note, 'note')];
  if (lines.length === 0) return said;
  const rows = lines.map((line) => ({ ...line, also: [] }));
  const main = rows.filter(({ interaction }) => !interaction);
  const groups = [['main effects', main], ['interactions', rows.filter((row) => !main.includes(row))]] as const;
  return [element('h3', {}, heading), ...judgedTable(groups.filter(([, of]) => of.length > 0), margin, 'Effect'), ...said];
}

function nameOf({ metric, across, lines }: Interaction): string {
  return `${capital(metric)} by ${across[0]} and ${lines[0]}`;
}

/** On a log axis lines are parallel where neither factor changes what the other does, because effects are ratios. */
function interactionChart(one: Interaction): Chart {
  const [across, levels] = one.across;
  const columns = levels.map((_, column) => column);
  const fitting = (text: string): string => (text.length > 18 ? `${text.slice(0, 17)}…` : text);
  const lines = one.lines[1].map((level, variant) => {
    const heights = one.values[variant] ?? [];
    const tell = (column: number) => ({ value: heights[column] ?? null, text: figure(one.unit, heights[column]) });
    return { variant, name: `${one.lines[0]}: ${level}`, heights, tell };
  });
  // A metric that is nowhere 0 is shown as ratios are.
  const log = one.values.flat().every((value) => value === null || value > 0);
  return {
    label: nameOf(one),
    summary: () => `A line for each level of ${one.lines[0]}: ${one.lines[1].join(', ')}.`,
    axis: { name: across, ticks: () => columns, labels: (places) => places.map((at) => fitting(levels[at] ?? '')) },
    columns,
    air: 0.35,
    panels: [{ axis: { name: one.metric, unit: one.unit, log }, height: 280, lines }],
    title: (column) => `${across}: ${levels[column] ?? ''}`,
  };
}
