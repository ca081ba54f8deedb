// The ratio of each block of one comparison, with the interval that all of them make: shows drift and what the interval is made of.

import { scaleLinear, scaleLog } from 'd3-scale';
import type { PageData, Verdict } from '../model';
import type { View } from '../view';
import { boxOf, clipTo, drawX, drawY, roomFor, type Box } from './axes';
import { wholeAxis } from './axis';
import { freshId, line, rectangle, svg } from './drawing';
import { empty } from './empty';
import { interval, ratio as asRatio } from './format';
import { framed, type Canvas, type Scene } from './frame';
import { dots, laneGroup, nearestPlace, path } from './lanes';
import { markAt } from './marks';
import { marginBand, ratioAxis, ratioDomain, shows } from './ratio-axis';
import { thin, type Point } from './thin';
import { columnsOf, stretchOf } from './zoom';

type Place = (value: number) => number;

export function blockRatios(data: PageData, view: View, which: number): HTMLElement {
  const verdict = data.verdicts[which];
  return framed(view, {
    label: verdict ? `${verdict.metric} of ${verdict.comparison}: ratio of each block` : 'Ratio of each block',
    summary: () => (verdict?.ratio ? `${verdict.blocks.length} blocks. ${verdict.word}: ${interval(verdict.ratio)}.` : ''),
    zooms: true,
    draw: (canvas) => (verdict && verdict.blocks.some(shows) ? drawn(data, verdict, canvas) : empty(canvas.width, whyNot(verdict))),
  });
}

function whyNot(verdict: Verdict | undefined): string {
  return verdict ? `No numbers may be shown: ${verdict.detail || verdict.word}` : 'This record compares nothing.';
}

function drawn(data: PageData, verdict: Verdict, canvas: Canvas): Scene {
  const points: Point[] = verdict.blocks.map((value, index) => [index + 1, shows(value) ? value : null]);
  const height = 240;
  const yAxis = ratioAxis(ratioDomain([...verdict.blocks, verdict.ratio], data.margin), 5);
  const box = boxOf(canvas.width, height, yAxis.ticks);
  const whole = scaleLinear([0.4, points.length + 0.6], [0, 1]);
  const x = scaleLinear(stretchOf(canvas.stretch, (share) => whole.invert(share)), [box.left, box.left + box.width]);
  const y = scaleLog(yAxis.domain, [box.top + box.height, box.top]);
  const xAxis = wholeAxis(x.domain() as [number, number], roomFor(box.width, 60));
  const better = verdict.more_is_better ? 'better ↑' : 'better ↓';
  const clip = freshId('clip');
  const group = laneGroup(0, verdict.candidate);
  const kept = thin(points, columnsOf(canvas.stretch, box.width));
  group.append(path(kept, x, y, 'curve faint'), ...marksOf(kept, verdict.candidate, x, y));
  const inside = svg('g', { 'clip-path': `url(#${clip})` }, group);
  return {
    height,
    content: [
      clipTo(box, clip),
      ...marginOf(data.margin, box, y),
      drawY(box, yAxis, y, `${verdict.metric} against the baseline, ${better}`),
      drawX(box, xAxis, x, 'blocks that count, in their order'),
      ...intervalOf(verdict, box, y),
      inside,
    ],
    box,
    readings: readingsOf(points, x, y),
    notes: ['The darker band is the interval over all blocks, its line the estimate; the lighter band is the margin within which a difference does not matter.'],
  };
}

/** Each block has its mark; where they are many, all of them are dots of one path. */
function marksOf(points: readonly Point[], variant: number, x: Place, y: Place): SVGElement[] {
  if (x(1) - x(0) < 6) return [dots(points, x, y)];
  return points.flatMap(([at, value]) => (value === null ? [] : [markAt(variant, x(at), y(value), 30)]));
}

function band([low, high]: readonly [number, number], box: Box, y: Place, kind: string): SVGElement {
  return rectangle(box.left, y(high), box.width, y(low) - y(high), kind);
}

function marginOf(margin: number, box: Box, y: Place): SVGElement[] {
  const free = marginBand(margin);
  return free ? [band(free, box, y, 'margin-band')] : [];
}

function intervalOf({ ratio, outcome }: Verdict, box: Box, y: Place): SVGElement[] {
  const end = box.left + box.width;
  const made: SVGElement[] = [line(box.left, y(1), end, y(1), 'no-change')];
  if (ratio && shows(ratio.low) && shows(ratio.high)) made.push(band([ratio.low, ratio.high], box, y, `interval-band outcome-${outcome}`));
  if (ratio && shows(ratio.estimate)) made.push(line(box.left, y(ratio.estimate), end, y(ratio.estimate), `estimate-line outcome-${outcome}`));
  return made;
}

function readingsOf(points: readonly Point[], x: Place, y: Place): Scene['readings'] {
  const places = points.map(([at]) => x(at));
  return {
    columns: points.length,
    lanes: 1,
    nearest: (atX) => ({ column: nearestPlace(places, atX), lane: 0 }),
    tell: ({ column }) => {
      const value = points[column]?.[1] ?? null;
      const text = value === null ? 'no ratio' : asRatio(value);
      const title = `block ${column + 1} of those that count`;
      return { x: places[column] ?? 0, y: value === null ? null : y(value), title, lines: [{ text }], spoken: `${title}: ${text}` };
    },
  };
}
