// A metric for each combination of two factors' levels: a line for each level of one along the levels of the other. On a log
// axis lines are parallel where neither factor changes what the other does, because effects are ratios.

import { scaleLinear, scaleLog, type ScaleContinuousNumeric } from 'd3-scale';
import type { Interaction, PageData } from '../model';
import type { View } from '../view';
import { boxOf, drawX, drawY } from './axes';
import { extent, linearAxis, logAxis, positive, type Axis } from './axis';
import type { Readings } from './cursor';
import { svg } from './drawing';
import { empty } from './empty';
import { figure } from './format';
import { framed, type Scene } from './frame';
import { dashOf, laneGroup, nearestLane, nearestPlace, path, tellAll, type Shown } from './lanes';
import { markAt } from './marks';
import type { Point } from './thin';
import { fit } from './words';

type Place = (value: number) => number;
type Lane = Shown & { values: (number | null)[] };

export function interactionPlot(data: PageData, view: View, which: number): HTMLElement {
  const one = data.interactions[which];
  return framed(view, {
    label: one ? `${one.metric} by ${one.across[0]} and ${one.lines[0]}` : 'Interaction',
    summary: () => (one ? `A line for each level of ${one.lines[0]}: ${one.lines[1].join(', ')}.` : ''),
    zooms: false,
    draw: ({ width }) => {
      const any = one?.values.some((row) => row.some((value) => value !== null)) ?? false;
      return one && any ? drawn(one, width) : empty(width, 'There are no two factors with figures.');
    },
  });
}

function drawn(one: Interaction, width: number): Scene {
  const height = 280;
  const all = one.values.flat();
  const span = positive(all);
  // A metric that is nowhere 0 is shown as ratios are, on a log axis.
  const log = span !== null && all.every((value) => value === null || value > 0);
  const yAxis = log ? logAxis(one.unit, span, 5) : linearAxis(one.unit, extent(all), 5, true);
  const box = boxOf(width, height, yAxis.ticks);
  const y: ScaleContinuousNumeric<number, number> = (log ? scaleLog() : scaleLinear()).domain(yAxis.domain).range([box.top + box.height, box.top]);
  const levels = one.across[1];
  const x = scaleLinear([-0.35, levels.length - 0.65], [box.left, box.left + box.width]);
  const each = box.width / Math.max(1, levels.length);
  const every = Math.ceil(48 / each);
  const ticks = levels.map((level, at) => ({ at, label: at % every === 0 ? fit(level, each * every - 8, 12) : '' }));
  const xAxis: Axis = { domain: [0, levels.length - 1], ticks, title: '', log: false, fromZero: false };
  const lanes: Lane[] = one.lines[1].map((name, line) => ({ variant: line, name, values: one.values[line] ?? [] }));
  const groups = lanes.map((lane, index) => drawnLane(lane, index, x, y));
  return {
    height,
    content: [drawY(box, yAxis, y, one.metric), drawX(box, xAxis, x, one.across[0]), svg('g', {}, ...groups)],
    box,
    readings: readingsOf(one, lanes, x, y),
    legend: lanes.map(({ variant, name }) => ({ variant, name: `${one.lines[0]}: ${name}` })),
  };
}

function drawnLane(lane: Lane, index: number, x: Place, y: Place): SVGElement {
  const group = laneGroup(index, lane.variant);
  const points: Point[] = lane.values.map((value, at) => [at, value]);
  group.append(path(points, x, y, 'curve strong', dashOf(lane.variant)));
  for (const [at, value] of points) if (value !== null) group.append(markAt(lane.variant, x(at), y(value), 60));
  return group;
}

function readingsOf(one: Interaction, lanes: readonly Lane[], x: Place, y: Place): Readings {
  const places = one.across[1].map((_, at) => x(at));
  const valueAt = (lane: Lane, column: number): number | null => lane.values[column] ?? null;
  return {
    columns: places.length,
    lanes: lanes.length,
    nearest: (atX, atY) => {
      const column = nearestPlace(places, atX);
      return { column, lane: nearestLane(lanes.map((lane) => valueAt(lane, column)).map((value) => (value === null ? null : y(value))), atY) };
    },
    tell: ({ column, lane }) => {
      const readings = lanes.map((each) => ({ ...each, value: valueAt(each, column), text: figure(one.unit, valueAt(each, column)) }));
      const own = readings[lane]?.value ?? null;
      return tellAll(readings, lane, `${one.across[0]}: ${one.across[1][column] ?? ''}`, { x: places[column] ?? 0, y: own === null ? null : y(own) });
    },
  };
}
