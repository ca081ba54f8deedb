// Draws axes: a line across for each tick, what stands there, and the axis' name where it is read first.

import type { Axis, Tick } from './axis';
import { line, rectangle, svg, words } from './drawing';
import { fit, widthOf } from './words';

/** Size of the type on axes in pixels; charts.css says the same. */
export const TYPE = 12;

/** Where figures are drawn, inside their axes. */
export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** The box that is left of a drawing of this size once its axes have their room. */
export function boxOf(width: number, height: number, yTicks: readonly Tick[], top = 28): Box {
  const left = Math.ceil(Math.max(16, ...yTicks.map((tick) => widthOf(tick.label, TYPE))) + 16);
  return { left, top, width: Math.max(40, width - left - 14), height: height - top - 40 };
}

/** How many words an axis of this length has room for. */
export function roomFor(length: number, each: number): number {
  return Math.max(2, Math.floor(length / each));
}

/** The upright axis at the left, its name above it. */
export function drawY(box: Box, axis: Axis, y: (value: number) => number, name: string): SVGGElement {
  const group = svg('g', { class: 'axis' });
  for (const tick of axis.ticks) {
    const at = y(tick.at);
    if (at < box.top - 1 || at > box.top + box.height + 1) continue;
    group.append(line(box.left, at, box.left + box.width, at, tick.at === 0 ? 'base' : tick.label ? 'grid' : 'grid minor'));
    if (tick.label) group.append(words(tick.label, box.left - 8, at + 4, 'tick', 'end'));
  }
  group.append(words(fit(yName(axis, name), box.left + box.width, TYPE), 0, box.top - 13, 'axis-name'));
  return group;
}

/** An axis that leaves out zero says so, because lengths on it mislead. */
export function yName(axis: Axis, name: string): string {
  const cut = axis.fromZero || axis.log ? '' : 'does not start at 0';
  return [name, axis.title, cut].filter((part) => part !== '').join(', ');
}

/** The axis below, its name at its right end. */
export function drawX(box: Box, axis: Axis, x: (value: number) => number, name: string): SVGGElement {
  const group = svg('g', { class: 'axis' });
  const bottom = box.top + box.height;
  for (const tick of axis.ticks) {
    const at = x(tick.at);
    if (at < box.left - 1 || at > box.left + box.width + 1) continue;
    group.append(line(at, box.top, at, bottom, tick.label ? 'grid upright' : 'grid upright minor'));
    group.append(line(at, bottom, at, bottom + (tick.label ? 5 : 3), 'notch'));
    if (tick.label) group.append(xWords(tick.label, at, bottom + 18, box));
  }
  group.append(line(box.left, bottom, box.left + box.width, bottom, 'base'));
  const text = [name, axis.title].filter((part) => part !== '').join(', ');
  group.append(words(fit(text, box.left + box.width, TYPE), box.left + box.width, bottom + 35, 'axis-name', 'end'));
  return group;
}

/** Words below a place, moved inside where they would stand beyond the drawing's right end. */
function xWords(label: string, at: number, y: number, box: Box): SVGTextElement {
  const half = widthOf(label, TYPE) / 2;
  const end = box.left + box.width + 14;
  return words(label, Math.min(Math.max(at, half), end - half), y, 'tick', 'middle');
}

/** Cuts what is drawn in it to the box. */
export function clipTo(box: Box, id: string): SVGElement {
  // A little beyond, so that marks on the frame stay whole.
  const hole = rectangle(box.left - 1, box.top - 6, box.width + 2, box.height + 12, '');
  return svg('clipPath', { id }, hole);
}
