// The time line of a trial: panels below each other over one time, with a line through all of them at the cursor.

import { scaleLinear, scaleLog, type ScaleContinuousNumeric } from 'd3-scale';
import type { PageData, TimeLine } from '../model';
import type { View } from '../view';
import { drawX, roomFor, TYPE, yName, type Box } from './axes';
import { extent, linearAxis, linearTicks, logAxis, positive, type Axis } from './axis';
import { freshId, line, rectangle, svg, words } from './drawing';
import { empty } from './empty';
import { figure, seconds } from './format';
import { framed, type Canvas, type Scene } from './frame';
import { nearestPlace } from './lanes';
import { look } from './palette';
import { panelsOf, runsOf, spanOf, type Panel, type Piece } from './trial';
import { fit, widthOf } from './words';
import { stretchOf } from './zoom';

type Place = (value: number) => number;
type Scale = ScaleContinuousNumeric<number, number>;

const TOP = 20;
const TITLE = 20;
const BETWEEN = 12;

/** The time line of the variant with this index. */
export function timeLine(data: PageData, view: View, variant: number): HTMLElement {
  const trial = trialOf(data, variant);
  const name = data.variants[variant]?.name ?? '';
  return framed(view, {
    label: `Time line of a trial of ${name}`,
    summary: () => (trial ? `Block ${trial.block}, ${seconds(spanOf(trial).end)}, of them ${seconds(spanOf(trial).warm)} of warm-up.` : ''),
    zooms: true,
    draw: (canvas) => (trial && trial.at_s.length > 0 ? drawn(trial, canvas) : empty(canvas.width, 'There is no time line of this variant.')),
  });
}

export function trialOf(data: PageData, variant: number): TimeLine | undefined {
  return data.time_lines.find((one) => one.variant === variant);
}

function drawn(trial: TimeLine, canvas: Canvas): Scene {
  const { panels, notes } = panelsOf(trial);
  const axes = panels.map((panel) => axisOf(panel));
  const left = Math.ceil(Math.max(24, ...axes.flatMap(({ ticks }) => ticks.map(({ label }) => widthOf(label, TYPE)))) + 16);
  const width = canvas.width - left - 14;
  const { warm, end } = spanOf(trial);
  const domain = stretchOf(canvas.stretch, (share) => share * end);
  const x = scaleLinear(domain, [left, left + width]);
  const boxes = boxesOf(panels, left, width);
  const bottom = boxes.reduce((low, box) => Math.max(low, box.top + box.height), TOP);
  const whole: Box = { left, top: TOP, width, height: bottom - TOP };
  const xAxis: Axis = { ...linearTicks('count', domain, roomFor(width, 60), true), title: '' };
  const clip = freshId('clip');
  const ground = svg('g', { 'clip-path': `url(#${clip})` });
  const inside = svg('g', { 'clip-path': `url(#${clip})`, class: `series-${look(trial.variant).hue}` });
  const content: SVGElement[] = [clipWide(whole, clip), ground, inside];
  panels.forEach((panel, index) => {
    const [box, axis] = [boxes[index] as Box, axes[index] as Axis];
    const y: Scale = (axis.log ? scaleLog() : scaleLinear()).domain(axis.domain).range([box.top + box.height, box.top]);
    if (warm > 0) ground.append(rectangle(x(0), box.top, x(warm) - x(0), box.height, 'warm-up'));
    for (const { at } of xAxis.ticks) ground.append(line(x(at), box.top, x(at), box.top + box.height, 'grid upright'));
    content.splice(2, 0, panelAxis(box, axis, y, panel));
    inside.append(...drawnPanel(trial, panel, x, y, axis));
  });
  content.push(drawX({ ...whole, top: bottom, height: 0 }, xAxis, x, 'seconds since the first slice'));
  if (warm > 0 && x(warm) > left) content.push(words('warm-up', Math.max(left, x(0)) + 5, TOP - 7, 'warm-up-name'));
  return { height: bottom + 40, content, box: whole, readings: readingsOf(trial, panels, x), notes };
}

/** Like the clip of other charts, without their air: panels lie close together. */
function clipWide(box: Box, id: string): SVGElement {
  return svg('clipPath', { id }, rectangle(box.left, box.top, box.width, box.height, ''));
}

function axisOf(panel: Panel): Axis {
  const values = panel.tracks.flatMap((track) => track.values);
  const about = panel.height > 100 ? 4 : 3;
  const most = extent(values)?.[1] ?? 0;
  if (panel.log) return logAxis(panel.unit, positive(values), 4);
  // Panels are low: a round number above the highest would leave half of them empty.
  return most > 0 ? linearTicks(panel.unit, [0, most * 1.06], about, true) : linearAxis(panel.unit, [0, 0], about, true);
}

function boxesOf(panels: readonly Panel[], left: number, width: number): Box[] {
  let top = TOP;
  return panels.map(({ height }) => {
    const box = { left, top: top + TITLE, width, height };
    top += TITLE + height + BETWEEN;
    return box;
  });
}

function panelAxis(box: Box, axis: Axis, y: Place, panel: Panel): SVGElement {
  const group = svg('g', { class: 'axis' });
  for (const tick of axis.ticks.filter(({ label }) => label !== '')) {
    group.append(line(box.left, y(tick.at), box.left + box.width, y(tick.at), 'grid'));
    group.append(words(tick.label, box.left - 8, y(tick.at) + 4, 'tick', 'end'));
  }
  group.append(line(box.left, box.top + box.height, box.left + box.width, box.top + box.height, 'base'));
  const kinds = panel.tracks.length > 1 ? ': median, shaded to 90 and 99 %' : '';
  group.append(words(fit(`${yName(axis, panel.name)}${kinds}`, box.width, TYPE), box.left, box.top - 6, 'axis-name'));
  return group;
}

function drawnPanel(trial: TimeLine, panel: Panel, x: Place, y: Place, axis: Axis): SVGElement[] {
  const lowest = axis.domain[0];
  const place: Place = (value) => y(Math.max(value, lowest));
  if (panel.bars) {
    return runsOf(trial, panel.tracks[0]?.values ?? []).flat().filter(({ value }) => value > 0).map((piece) => bar(piece, x, place, lowest));
  }
  const [first, ...others] = panel.tracks;
  const made: SVGElement[] = [];
  let lower = first?.values ?? [];
  others.forEach((track, index) => {
    made.push(svg('path', { d: band(trial, lower, track.values, x, place), class: `band band-${index}` }));
    lower = track.values.map((value, at) => value ?? lower[at] ?? null);
  });
  const d = runsOf(trial, first?.values ?? []).map((run) => steps(run, x, place)).join('');
  return [...made, svg('path', { d, class: 'curve steps' })];
}

function bar({ from, to, value }: Piece, x: Place, y: Place, lowest: number): SVGElement {
  return rectangle(x(from), y(value), Math.max(1, x(to) - x(from) - 0.5), y(lowest) - y(value), 'bar');
}

/** Each piece is level for as long as it lasted: what lies between two measurements is not made up. */
function steps(run: readonly Piece[], x: Place, y: Place): string {
  return run.map(({ from, to, value }, index) => `${index === 0 ? 'M' : 'L'}${at(x(from), y(value))}L${at(x(to), y(value))}`).join('');
}

/** The stretch between two tracks, where both are there. */
function band(trial: TimeLine, lower: readonly (number | null)[], upper: readonly (number | null)[], x: Place, y: Place): string {
  const both = upper.map((value, index) => (value === null || (lower[index] ?? null) === null ? null : index));
  return runsOf(trial, both)
    .map((run) => {
      const back = [...run].reverse().map(({ from, to, value }) => {
        const low = y(lower[value] ?? 0);
        return `L${at(x(to), low)}L${at(x(from), low)}`;
      });
      return `${steps(run, x, (index) => y(upper[index] ?? 0))}${back.join('')}Z`;
    })
    .join('');
}

function at(x: number, y: number): string {
  return `${x.toFixed(1)},${y.toFixed(1)}`;
}

function readingsOf(trial: TimeLine, panels: readonly Panel[], x: Place): Scene['readings'] {
  const places = trial.at_s.map((from, index) => x(from + (trial.lasts_s[index] ?? 0) / 2));
  return {
    columns: trial.at_s.length,
    lanes: 1,
    nearest: (atX) => ({ column: nearestPlace(places, atX), lane: 0 }),
    tell: ({ column }) => {
      const title = `${seconds(trial.at_s[column] ?? 0)}${column < trial.warm_up ? ', warm-up' : ''}`;
      const lines = panels.flatMap(({ tracks, unit }) =>
        tracks.map(({ name, values }) => ({ text: `${name} ${figure(unit, values[column] ?? null)}` })),
      );
      return { x: places[column] ?? 0, y: null, title, lines, spoken: `${title}. ${lines.map(({ text }) => text).join(', ')}` };
    },
  };
}
