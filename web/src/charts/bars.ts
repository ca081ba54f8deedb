// Rows of amounts from zero: names at the left or, on narrow drawings, above; an axis below. What stands in a row is drawn by
// whoever has the rows.

import { roomFor, TYPE } from './axes';
import type { Axis } from './axis';
import { line, svg, words } from './drawing';
import { fit, widthOf } from './words';

export interface RowsLayout {
  wide: boolean;
  left: number;
  width: number;
  labels: number;
  /** Height of a row. */
  row: number;
  /** From a row's top to the middle of what is drawn in it. */
  middle: number;
}

const WIDE = 560;
const SIZE = 13;

/** Shares a drawing between names and amounts; `told` is the room that figures need behind the amounts. */
export function rowsLayout(labels: readonly string[], width: number, told: number): RowsLayout {
  if (width < WIDE) return { wide: false, left: 6, width: width - told - 18, labels: width - 8, row: 40, middle: 27 };
  const longest = Math.max(0, ...labels.map((label) => widthOf(label, SIZE)));
  const room = Math.min(width * 0.4, longest + 34);
  return { wide: true, left: room + 8, width: width - room - told - 26, labels: room, row: 24, middle: 12 };
}

/** The room for words on the axis of such rows. */
export function rowsRoom({ width }: RowsLayout): number {
  return roomFor(width, 70);
}

/** A row's name, `indent` from the left. */
export function rowName(text: string, top: number, layout: RowsLayout, indent: number): SVGElement {
  return words(fit(text, layout.labels - indent, SIZE), indent, top + (layout.wide ? 16.5 : 13), 'row-name');
}

/** Lines across for the axis of rows between two heights, and the axis below them. */
export function rowsAxis(axis: Axis, x: (value: number) => number, top: number, bottom: number, layout: RowsLayout, name: string): SVGElement {
  const group = svg('g', { class: 'axis' });
  const end = layout.left + layout.width;
  for (const { at, label } of axis.ticks) {
    group.append(line(x(at), top, x(at), bottom, at === 0 ? 'base' : 'grid upright'), line(x(at), bottom, x(at), bottom + 5, 'notch'));
    const half = widthOf(label, TYPE) / 2;
    group.append(words(label, Math.max(half + 1, x(at)), bottom + 18, 'tick', 'middle'));
  }
  group.append(line(layout.left, bottom, end, bottom, 'base'));
  const text = [name, axis.title].filter((part) => part !== '').join(', ');
  group.append(words(fit(text, end - 4, TYPE), end, bottom + 35, 'axis-name', 'end'));
  return group;
}
