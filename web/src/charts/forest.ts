// Rows of estimates: an interval as a bar against the margin, the estimate as a mark, and in words what is concluded. What may
// show no number shows none.

import { scaleLog } from 'd3-scale';
import type { Outcome, Ratio } from '../model';
import { roomFor, TYPE } from './axes';
import type { Readings } from './cursor';
import { hatching, line, rectangle, svg, words } from './drawing';
import type { Scene } from './frame';
import { outcomeAt } from './marks';
import { marginBand, ratioAxis, ratioDomain, shows } from './ratio-axis';
import { fit, widthOf } from './words';

export interface Row {
  label: string;
  outcome: Outcome;
  word: string;
  detail: string;
  ratio: Ratio | null;
}

/** Rows under one heading, with the direction that is better in it; `null` where none is. */
export interface Group {
  heading: string;
  moreIsBetter: boolean | null;
  rows: Row[];
}

type Place = (value: number) => number;

/** With less than this left for bars the words of a row stand above its bar and not beside it. */
const BARS_LEAST = 280;
const ROW = 30;
const ROW_NARROW = 58;
const HEADING = 34;
const AXIS = 44;
const SIZE = 13;

interface Layout {
  /** All of the drawing. */
  whole: number;
  wide: boolean;
  /** Where bars lie. */
  left: number;
  width: number;
  /** Where words begin at the right, on wide drawings. */
  right: number;
  labels: number;
}

/** How a drawing of this width is shared between names, bars and words. */
export function layoutOf(rows: readonly Row[], width: number): Layout {
  const narrow: Layout = { whole: width, wide: false, left: 14, width: width - 28, right: 0, labels: width };
  const longest = (texts: string[]): number => Math.max(0, ...texts.map((text) => widthOf(text, SIZE)));
  const labels = Math.min(width * 0.34, longest(rows.map(({ label }) => label)) + 8);
  const told = Math.min(width * 0.34, longest(rows.map(({ word, detail }) => `${word}  ${detail}`)) + 24);
  const bars = width - labels - told - 32;
  return bars < BARS_LEAST ? narrow : { whole: width, wide: true, left: labels + 16, width: bars, right: width - told, labels };
}

/** The scene of some groups of rows. */
export function forest(groups: readonly Group[], margin: number, width: number): Scene {
  const rows = groups.flatMap((group) => group.rows);
  const layout = layoutOf(rows, width);
  const axis = ratioAxis(ratioDomain(rows.map(({ ratio }) => ratio), margin), roomFor(layout.width, 66));
  const x = scaleLog(axis.domain, [layout.left, layout.left + layout.width]);
  const ticks = axis.ticks.map(({ at }) => at);
  const { id, definition } = hatching('hatch-interval');
  const content: SVGElement[] = [svg('defs', {}, definition)];
  const middles: number[] = [];
  let top = 0;
  for (const group of groups) {
    content.push(...headingOf(group, top, layout, x));
    top += HEADING;
    for (const row of group.rows) {
      // Behind the bar alone where words stand above it, so that nothing runs through them.
      const [from, high] = layout.wide ? [top, ROW] : [top + 32, 18];
      content.push(...ground(margin, ticks, from, high, x), drawnRow(row, top, layout, x, id));
      middles.push(top + (layout.wide ? ROW / 2 : 41));
      top += layout.wide ? ROW : ROW_NARROW;
    }
    top += 6;
  }
  content.push(...axisBelow(axis.ticks, top, layout, x));
  const box = { left: layout.left, top: 0, width: layout.width, height: top };
  return { height: top + AXIS, content, box, readings: readingsOf(rows, middles, x) };
}

/** What the rows below are of, and which way is better. */
function headingOf({ heading, moreIsBetter }: Group, top: number, layout: Layout, x: Place): SVGElement[] {
  const base = top + 22;
  const hint = moreIsBetter === null ? '' : moreIsBetter ? 'better →' : '← better';
  const room = (layout.wide ? layout.left : layout.left + layout.width - widthOf(hint, TYPE)) - 20;
  const made: SVGElement[] = [words(fit(heading, room, SIZE), layout.wide ? 4 : 0, base, 'group-name')];
  if (hint === '') return made;
  if (!layout.wide) made.push(words(hint, layout.left + layout.width, base, 'hint', 'end'));
  else made.push(words(hint, x(1) + (moreIsBetter ? 8 : -8), base, 'hint', moreIsBetter ? 'start' : 'end'));
  return made;
}

/** The margin's band, the ticks' lines and the line of no change behind rows. */
function ground(margin: number, ticks: readonly number[], top: number, height: number, x: Place): SVGElement[] {
  const free = marginBand(margin);
  const made: SVGElement[] = free ? [rectangle(x(free[0]), top, x(free[1]) - x(free[0]), height, 'margin-band')] : [];
  for (const at of ticks) made.push(line(x(at), top, x(at), top + height, 'grid upright'));
  made.push(line(x(1), top, x(1), top + height, 'no-change'));
  return made;
}

function drawnRow(row: Row, top: number, layout: Layout, x: Place, hatch: string): SVGElement {
  const group = svg('g', { class: 'row' });
  const middle = top + (layout.wide ? ROW / 2 : 41);
  if (layout.wide) {
    group.append(words(fit(row.label, layout.labels, SIZE), 4, middle + 4.5, 'row-name'));
    group.append(verdictWords(row, layout.right, middle + 4.5, layout));
  } else {
    group.append(words(fit(row.label, layout.whole, SIZE), 0, top + 12, 'row-name'));
    group.append(verdictWords(row, 0, top + 27, layout));
  }
  group.append(...bar(row, middle, layout, x, hatch));
  return group;
}

function verdictWords({ word, detail, outcome }: Row, x: number, y: number, layout: Layout): SVGElement {
  const room = layout.whole - x - widthOf(word, SIZE) - 12;
  const strong = svg('tspan', { class: `row-word outcome-${outcome}` }, word);
  const told = svg('tspan', { dx: 7, class: 'detail' }, fit(detail, room, TYPE));
  return svg('text', { x, y, class: 'row-words' }, strong, told);
}

/** The interval as a bar and the estimate as a mark. An end that is no number runs off the drawing. */
function bar({ ratio, outcome, word }: Row, y: number, layout: Layout, x: Place, hatch: string): SVGElement[] {
  const end = layout.left + layout.width;
  if (ratio === null || !shows(ratio.estimate)) {
    // No number may be shown, so nothing stands at any place of the axis.
    return [line(layout.left, y, end, y, 'no-number'), ...noNumber(word, outcome, layout.left + layout.width / 2, y)];
  }
  const low = shows(ratio.low) ? x(ratio.low) : layout.left;
  const high = shows(ratio.high) ? x(ratio.high) : end;
  const interval = rectangle(low, y - 5, Math.max(2, high - low), 10, `interval outcome-${outcome}`);
  if (outcome === 'inconclusive') interval.setAttribute('fill', `url(#${hatch})`);
  return [interval, outcomeAt(outcome, x(ratio.estimate), y)];
}

function noNumber(word: string, outcome: Outcome, x: number, y: number): SVGElement[] {
  const text = outcome === 'no_success' ? word : `${word}: no number`;
  const wide = widthOf(text, TYPE) + 34;
  return [
    rectangle(x - wide / 2, y - 9, wide, 18, 'no-number-ground'),
    outcomeAt(outcome, x - wide / 2 + 12, y, 60),
    words(text, x + 10, y + 4, 'no-number-words', 'middle'),
  ];
}

function axisBelow(ticks: readonly { at: number; label: string }[], top: number, layout: Layout, x: Place): SVGElement[] {
  const group = svg('g', { class: 'axis' });
  group.append(line(layout.left, top, layout.left + layout.width, top, 'base'));
  const least = layout.wide ? 0 : 2;
  for (const { at, label } of ticks) {
    const half = widthOf(label, TYPE) / 2;
    const middle = Math.max(half + least, x(at));
    group.append(line(x(at), top, x(at), top + 5, 'notch'), words(label, middle, top + 18, 'tick', 'middle'));
  }
  const name = layout.width > 330 ? 'candidate against baseline, log scale; band: within the margin' : 'log scale; band: within the margin';
  group.append(words(name, layout.left + layout.width, top + 36, 'axis-name', 'end'));
  return [group];
}

function readingsOf(rows: readonly Row[], middles: readonly number[], x: Place): Readings {
  const nearest = (y: number): number => {
    let best = 0;
    middles.forEach((middle, index) => {
      if (Math.abs(middle - y) < Math.abs((middles[best] ?? 0) - y)) best = index;
    });
    return best;
  };
  return {
    columns: rows.length,
    lanes: 1,
    upright: true,
    nearest: (_x, y) => ({ column: nearest(y), lane: 0 }),
    tell: ({ column }) => {
      const row = rows[column];
      const text = row ? `${row.word} ${row.detail}`.trim() : '';
      const place = row?.ratio && shows(row.ratio.estimate) ? x(row.ratio.estimate) : x(1);
      return { x: place, y: middles[column] ?? 0, title: row?.label ?? '', lines: [{ text }], spoken: `${row?.label ?? ''}: ${text}` };
    },
  };
}
