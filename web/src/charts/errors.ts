// Errors as bars: of each variant, phase and cause the share of its requests, from zero, with the count in words.

import { scaleLinear } from 'd3-scale';
import type { ErrorRow, PageData } from '../model';
import type { View } from '../view';
import { extent, linearAxis } from './axis';
import { rowName, rowsAxis, rowsLayout, rowsRoom, type RowsLayout } from './bars';
import { rectangle, svg, words } from './drawing';
import { empty } from './empty';
import { grouped, threeDigits } from './format';
import { framed, type Scene } from './frame';
import { markAt } from './marks';
import { look } from './palette';
import { fit, widthOf } from './words';

const NONE_SHOWN = 'None of the variants that are switched on had errors.';
/** So many bars can be read; the table has all. */
const BARS_MAX = 60;

/** Errors to draw: those of variants that are shown, the largest share first within a variant; and what is left out. */
export function errorRows(data: PageData, view: View): { rows: ErrorRow[]; hidden: number; more: number } {
  const seen = data.errors.filter(({ variant }) => !view.hidden(variant));
  const ordered = [...seen].sort((a, b) => a.variant - b.variant || shareOf(b) - shareOf(a));
  const kept = new Set([...ordered].sort((a, b) => shareOf(b) - shareOf(a)).slice(0, BARS_MAX));
  const hidden = new Set(data.errors.filter(({ variant }) => view.hidden(variant)).map(({ variant }) => variant)).size;
  return { rows: ordered.filter((row) => kept.has(row)), hidden, more: ordered.length - kept.size };
}

export function shareOf({ count, requests }: ErrorRow): number {
  return requests > 0 ? count / requests : 0;
}

/** `1,234 of 56,000`; how many of how many. */
export function countsOf({ count, requests }: ErrorRow): string {
  return `${grouped(count)} of ${grouped(requests)}`;
}

export function shareInWords(row: ErrorRow): string {
  const share = shareOf(row) * 100;
  if (share > 0 && share < 0.01) return '< 0.01 %';
  return `${threeDigits(share)} %`;
}

export function errorBars(data: PageData, view: View): HTMLElement {
  return framed(view, {
    label: 'Errors by variant, phase and cause',
    summary: () => `${errorRows(data, view).rows.slice(0, 6).map((row) => `${nameOf(data, row.variant)}: ${row.phase}, ${row.cause}: ${countsOf(row)}`).join('; ')}.`,
    zooms: false,
    draw: ({ width }) => {
      const { rows, hidden, more } = errorRows(data, view);
      const scene = rows.length === 0 ? empty(width, data.errors.length === 0 ? 'Not one request failed.' : NONE_SHOWN) : drawn(data, rows, width);
      const notes = [...(scene.notes ?? [])];
      if (more > 0) notes.push(`${more} smaller ones are in the table alone.`);
      if (hidden > 0) notes.push(`${hidden} ${hidden === 1 ? 'variant that is' : 'variants that are'} switched off had errors too.`);
      return { ...scene, notes };
    },
  });
}

function nameOf(data: PageData, variant: number): string {
  return data.variants[variant]?.name ?? '';
}

function drawn(data: PageData, rows: readonly ErrorRow[], width: number): Scene {
  const labels = rows.map(({ phase, cause }) => `${phase}: ${cause}`);
  const told = Math.max(...rows.map((row) => widthOf(figuresOf(row, width), 12))) + 16;
  const layout = rowsLayout([...labels, ...rows.map(({ variant }) => nameOf(data, variant))], width, told);
  const axis = linearAxis('share', extent(rows.map(shareOf)), rowsRoom(layout), true);
  const x = scaleLinear(axis.domain, [layout.left, layout.left + layout.width]);
  const content: SVGElement[] = [];
  const middles: number[] = [];
  let top = 0;
  rows.forEach((row, index) => {
    if (rows[index - 1]?.variant !== row.variant) {
      content.push(markAt(row.variant, 8, top + 17, 40), words(fit(nameOf(data, row.variant), width - 24, 13), 20, top + 21.5, 'group-name'));
      top += 28;
    }
    content.push(rowName(labels[index] ?? '', top, layout, layout.wide ? 20 : 0), ...barOf(row, top, layout, x, width));
    middles.push(top + layout.middle);
    top += layout.row;
  });
  content.unshift(rowsAxis(axis, x, 0, top, layout, 'share of requests'));
  const box = { left: layout.left, top: 0, width: layout.width, height: top };
  return { height: top + 44, content, box, readings: readingsOf(data, rows, middles, x) };
}

function figuresOf(row: ErrorRow, width: number): string {
  return width < 420 ? grouped(row.count) : `${countsOf(row)} (${shareInWords(row)})`;
}

function barOf(row: ErrorRow, top: number, layout: RowsLayout, x: (value: number) => number, width: number): SVGElement[] {
  const end = x(shareOf(row));
  const bar = rectangle(layout.left, top + layout.middle - 6, Math.max(1, end - layout.left), 12, `bar series-${look(row.variant).hue}`);
  return [bar, svg('text', { x: end + 8, y: top + layout.middle + 4.5, class: 'row-figure' }, figuresOf(row, width))];
}

function readingsOf(data: PageData, rows: readonly ErrorRow[], middles: readonly number[], x: (value: number) => number): Scene['readings'] {
  return {
    columns: rows.length,
    lanes: 1,
    upright: true,
    nearest: (_x, y) => {
      let best = 0;
      middles.forEach((middle, index) => {
        if (Math.abs(middle - y) < Math.abs((middles[best] ?? 0) - y)) best = index;
      });
      return { column: best, lane: 0 };
    },
    tell: ({ column }) => {
      const row = rows[column] as ErrorRow;
      const title = `${nameOf(data, row.variant)}, ${row.phase}: ${row.cause}`;
      const lines = [`${countsOf(row)} requests (${shareInWords(row)})`, ...(row.example === null ? [] : [`such as ${row.example}`])];
      return { x: x(shareOf(row)), y: middles[column] ?? 0, title, lines: lines.map((text) => ({ text })), spoken: `${title}: ${lines.join(', ')}` };
    },
  };
}
