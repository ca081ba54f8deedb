// A metric block by block, a line a variant: shows drift, outliers, and whether the blocks agree.

import { scaleLinear } from 'd3-scale';
import type { BlockSeries, PageData } from '../model';
import type { View } from '../view';
import { boxOf, clipTo, drawX, drawY, roomFor, type Box } from './axes';
import { extent, linearAxis, wholeAxis } from './axis';
import { hasFigures, laneOf, seriesOf, type BlockLane } from './blocks';
import type { Readings } from './cursor';
import { freshId, hatching, rectangle, svg } from './drawing';
import { ALL_HIDDEN, empty } from './empty';
import { figure } from './format';
import { framed, type Canvas, type Scene } from './frame';
import { dashOf, dense, laneGroup, nearestLane, nearestPlace, path, shownOf, tellAll, type Shown } from './lanes';
import { markAt } from './marks';
import { thin } from './thin';
import { toggle } from './toggle';
import { columnsOf, stretchOf } from './zoom';

type Lane = BlockLane & Shown;
type Place = (value: number) => number;

/** So close together marks would only hide the lines. */
const MARKS_APART = 12;

export function blockSeries(data: PageData, view: View, which: number | string): HTMLElement {
  const series = seriesOf(data.series, which);
  let zero = false;
  return framed(view, {
    label: `${series?.metric ?? ''} block by block`,
    summary: () => (series ? summaryOf(series) : ''),
    zooms: true,
    tools: (redraw) => [
      toggle('From zero', (on) => {
        zero = on;
        redraw();
      }),
    ],
    draw: (canvas) => (series ? drawn(data, view, series, canvas, zero) : empty(canvas.width, 'This record has no such figures.')),
  });
}

function summaryOf({ blocks, dropped }: BlockSeries): string {
  const left = dropped.length === 0 ? '' : ` ${dropped.length} of them were dropped and count for nothing.`;
  return `${blocks.length} ${blocks.length === 1 ? 'block' : 'blocks'}.${left}`;
}

function drawn(data: PageData, view: View, series: BlockSeries, canvas: Canvas, zero: boolean): Scene {
  const shown = shownOf(data, view, (variant) => hasFigures(series, variant));
  if (shown.length === 0 || series.blocks.length === 0) return empty(canvas.width, ALL_HIDDEN);
  const lanes: Lane[] = shown.map((one) => ({ ...one, ...laneOf(series, one.variant) }));
  const height = canvas.width < 480 ? 260 : 300;
  const span = extent(lanes.flatMap(({ counted, dropped }) => [...counted, ...dropped].map(([, value]) => value)));
  const yAxis = linearAxis(series.unit, span, 5, zero);
  const box = boxOf(canvas.width, height, yAxis.ticks);
  const whole = scaleLinear([(series.blocks[0] ?? 0) - 0.6, (series.blocks[series.blocks.length - 1] ?? 0) + 0.6], [0, 1]);
  const x = scaleLinear(stretchOf(canvas.stretch, (share) => whole.invert(share)), [box.left, box.left + box.width]);
  const y = scaleLinear(yAxis.domain, [box.top + box.height, box.top]);
  const xAxis = wholeAxis(x.domain() as [number, number], roomFor(box.width, 60));
  const plain = dense(lanes.length, series.blocks.length * (canvas.stretch[1] - canvas.stretch[0]));
  const placing = { x, y, apart: plain ? 0 : Math.abs(x(1) - x(0)), columns: columnsOf(canvas.stretch, box.width) };
  const clip = freshId('clip');
  const inside = svg('g', { 'clip-path': `url(#${clip})` }, ...droppedBlocks(series, box, x));
  lanes.forEach((lane, index) => inside.append(drawnLane(lane, laneGroup(index, lane.variant, plain), placing)));
  return {
    height,
    content: [clipTo(box, clip), drawY(box, yAxis, y, series.metric), drawX(box, xAxis, x, 'block'), inside],
    box,
    readings: readingsOf(series, lanes, x, y),
    legend: shown,
    notes: series.dropped.length > 0 ? ['Hatched blocks were dropped and count for nothing.'] : [],
  };
}

function droppedBlocks(series: BlockSeries, box: Box, x: Place): SVGElement[] {
  if (series.dropped.length === 0) return [];
  const { id, definition } = hatching('hatch-dropped');
  const bands = series.dropped.map((block) => {
    const width = Math.max(3, x(block + 0.5) - x(block - 0.5));
    const band = rectangle(x(block) - width / 2, box.top, width, box.height, 'dropped');
    band.setAttribute('fill', `url(#${id})`);
    return band;
  });
  return [svg('defs', {}, definition), ...bands];
}

/** How lanes are placed and how dense they are. */
interface Placing {
  x: Place;
  y: Place;
  /** Pixels from one block to the next; 0 where lanes are too many for marks. */
  apart: number;
  /** Columns that a line is thinned to. */
  columns: number;
}

function drawnLane(lane: Lane, group: SVGElement, { x, y, apart, columns }: Placing): SVGElement {
  const points = thin(lane.counted, columns);
  group.append(path(points, x, y, 'curve', dashOf(lane.variant)));
  const alone = isolated(lane.counted);
  for (const [at, value] of lane.counted) {
    if (value === null) continue;
    if (apart >= MARKS_APART || alone.has(at)) group.append(markAt(lane.variant, x(at), y(value), apart >= 24 ? 36 : 22));
  }
  if (apart === 0) return group;
  for (const [at, value] of lane.dropped) group.append(markAt(lane.variant, x(at), y(value), 26, 'mark hollow'));
  return group;
}

/** Places between two gaps: a line does not show them. */
function isolated(points: readonly (readonly [number, number | null])[]): Set<number> {
  const empty = (index: number): boolean => (points[index]?.[1] ?? null) === null;
  return new Set(points.filter((_, index) => !empty(index) && empty(index - 1) && empty(index + 1)).map(([at]) => at));
}

function readingsOf(series: BlockSeries, lanes: readonly Lane[], x: Place, y: Place): Readings {
  const valueAt = (lane: Lane, column: number): number | null => series.values[lane.variant]?.[column] ?? null;
  const places = series.blocks.map((block) => x(block));
  return {
    columns: series.blocks.length,
    lanes: lanes.length,
    nearest: (atX, atY) => {
      const column = nearestPlace(places, atX);
      const heights = lanes.map((lane) => valueAt(lane, column)).map((value) => (value === null ? null : y(value)));
      return { column, lane: nearestLane(heights, atY) };
    },
    tell: ({ column, lane }) => {
      const block = series.blocks[column] ?? 0;
      const readings = lanes.map((one) => ({ ...one, value: valueAt(one, column), text: figure(series.unit, valueAt(one, column)) }));
      const own = readings[lane]?.value ?? null;
      const title = `block ${block}${series.dropped.includes(block) ? ', dropped' : ''}`;
      return tellAll(readings, lane, title, { x: places[column] ?? 0, y: own === null ? null : y(own) });
    },
  };
}
