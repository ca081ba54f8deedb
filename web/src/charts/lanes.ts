// What charts with a line for each variant share: which variants are shown, how their lines are drawn, and what the tip says
// of them.

import { line as curve } from 'd3-shape';
import type { PageData } from '../model';
import type { View } from '../view';
import type { Told } from './cursor';
import { svg } from './drawing';
import { look } from './palette';
import type { Point } from './thin';

/** A variant that is shown. */
export interface Shown {
  variant: number;
  name: string;
}

/** The variants that are not hidden, of those that a chart has something of. */
export function shownOf(data: PageData, view: View, has: (variant: number) => boolean): Shown[] {
  return data.variants.flatMap(({ name }, variant) => (!view.hidden(variant) && has(variant) ? [{ variant, name }] : []));
}

/** With more lines than these in a drawing they are thin and have no marks: the cursor tells which is which. */
const LANES_PLAIN = 12;

/** Whether a drawing has so many lanes, or one so many points, that only thin lines can be read. */
export function dense(lanes: number, points: number): boolean {
  return lanes > LANES_PLAIN || points > 150;
}

/** A group for all that belongs to a lane, so that the cursor can make it stand out. */
export function laneGroup(lane: number, variant: number, thin = false): SVGGElement {
  return svg('g', { 'data-lane': lane, class: `lane series-${look(variant).hue}${thin ? ' thin' : ''}` });
}

/** A line through points; it breaks where there is none, and a point between two gaps is a dot. */
export function path(points: readonly Point[], x: (at: number) => number, y: (value: number) => number, kind: string, dash = ''): SVGPathElement {
  const draw = curve<Point>()
    .defined(([, value]) => value !== null)
    .x(([at]) => x(at))
    .y(([, value]) => y(value ?? 0))
    .digits(1);
  return svg('path', { d: draw(points) ?? '', class: kind, 'stroke-dasharray': dash || null });
}

/** Points as dots, in one element however many they are. */
export function dots(points: readonly Point[], x: (at: number) => number, y: (value: number) => number): SVGPathElement {
  const d = points.flatMap(([at, value]) => (value === null ? [] : [`M${x(at).toFixed(1)},${y(value).toFixed(1)}h0`]));
  return svg('path', { d: d.join(''), class: 'dots' });
}

/** The variant's own dashes. */
export function dashOf(variant: number): string {
  return look(variant).dash;
}

/** Lines that fit in a tip. */
const TIP_MAX = 9;

/** A lane's figure at the cursor. */
export interface Reading extends Shown {
  value: number | null;
  text: string;
}

/** What is told of all lanes at one place: the largest first, the cursor's own strong, and of many those around it. */
export function tellAll(readings: readonly Reading[], lane: number, title: string, place: { x: number; y: number | null }): Told {
  const own = readings[lane];
  const there = readings.filter(({ value }) => value !== null).sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
  const at = Math.max(0, there.findIndex((one) => one === own));
  const begin = Math.max(0, Math.min(at - Math.floor(TIP_MAX / 2), there.length - TIP_MAX));
  const kept = there.slice(begin, begin + TIP_MAX);
  const lines: Told['lines'] = kept.map((one) => ({
    text: `${one.name}: ${one.text}`,
    variant: one.variant,
    strong: one === own && readings.length > 1,
  }));
  if (there.length > kept.length) lines.push({ text: `and ${there.length - kept.length} more` });
  if (there.length === 0) lines.push({ text: 'nothing here' });
  const spoken = own === undefined ? title : `${title}. ${own.name}: ${own.value === null ? 'nothing' : own.text}`;
  return { ...place, title, lines, spoken };
}

/** The lane whose figure lies nearest to a height; 0 where none has one. */
export function nearestLane(heights: readonly (number | null)[], y: number): number {
  let best = 0;
  let least = Infinity;
  heights.forEach((height, lane) => {
    if (height === null || Math.abs(height - y) >= least) return;
    least = Math.abs(height - y);
    best = lane;
  });
  return best;
}

/** Index of the place nearest to `x`; places rise. */
export function nearestPlace(places: readonly number[], x: number): number {
  let best = 0;
  places.forEach((place, index) => {
    if (Math.abs(place - x) < Math.abs((places[best] ?? 0) - x)) best = index;
  });
  return best;
}
