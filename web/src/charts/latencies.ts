// Distributions of times: by percentile, where the tail has its room, and cumulative. Where requests were given up, values
// are lower bounds, and their part of a curve is dotted.

import { scaleLinear, scaleLog, type ScaleContinuousNumeric } from 'd3-scale';
import type { LatencyCurve, LatencyCurves, PageData } from '../model';
import type { View } from '../view';
import { boxOf, clipTo, drawX, drawY, roomFor, type Box } from './axes';
import { linearAxis, logAxis, logTicks, positive, type Axis } from './axis';
import type { Readings } from './cursor';
import { freshId, svg } from './drawing';
import { ALL_HIDDEN, empty } from './empty';
import { figure, grouped, percentile } from './format';
import { framed, type Canvas, type Scene } from './frame';
import { dashOf, dense, laneGroup, nearestLane, nearestPlace, path, shownOf, tellAll, type Shown } from './lanes';
import { markAt } from './marks';
import { nines, ninesTicks, parts, pointAt, shareAt, stops, timeAt, timesToStop } from './percentiles';
import type { Point } from './thin';
import { toggle } from './toggle';
import { stretchOf } from './zoom';

type Lane = Shown & { curve: LatencyCurve };
type Place = (value: number) => number;
type Scale = ScaleContinuousNumeric<number, number>;

const DOTTED = 'Where a line is dotted, requests were given up: the times there are at least what is shown.';
/** From this factor between the least median and the farthest tail on, a linear axis would flatten all but the tail. */
const LOG_FROM = 8;

export function percentilePlot(data: PageData, view: View, which: number): HTMLElement {
  const latency = data.latencies[which];
  let log = latency === undefined || spreads(latency);
  return framed(view, {
    label: `${latency?.kind ?? 'times'} by percentile`,
    summary: () => summaryOf(data, view, latency),
    zooms: true,
    tools: (redraw) => [
      toggle('Log scale of time', (on) => {
        log = on;
        redraw();
      }, log),
    ],
    draw: (canvas) => {
      const lanes = lanesOf(data, view, latency);
      return lanes.length === 0 ? empty(canvas.width, ALL_HIDDEN) : byPercentile(latency?.kind ?? '', lanes, canvas, log);
    },
  });
}

export function cumulativePlot(data: PageData, view: View, which: number): HTMLElement {
  const latency = data.latencies[which];
  return framed(view, {
    label: `${latency?.kind ?? 'times'}, cumulative`,
    summary: () => summaryOf(data, view, latency),
    zooms: true,
    draw: (canvas) => {
      const lanes = lanesOf(data, view, latency);
      return lanes.length === 0 ? empty(canvas.width, ALL_HIDDEN) : cumulative(latency?.kind ?? '', lanes, canvas);
    },
  });
}

function lanesOf(data: PageData, view: View, latency: LatencyCurves | undefined): Lane[] {
  const curveOf = (variant: number): LatencyCurve | undefined => latency?.curves[variant];
  return shownOf(data, view, (variant) => (curveOf(variant)?.points.length ?? 0) > 0).flatMap((shown) => {
    const curve = curveOf(shown.variant);
    return curve ? [{ ...shown, curve }] : [];
  });
}

function spreads({ curves }: LatencyCurves): boolean {
  const there = curves.filter(({ points }) => points.length > 0);
  const middles = there.map((curve) => timeAt(curve, 0.5)?.us ?? 0);
  const ends = there.map(({ points }) => points[points.length - 1]?.[1] ?? 0);
  return Math.max(0, ...ends) > LOG_FROM * Math.min(...middles);
}

/** Median and the farthest percentile of a few, for whoever does not see the curves. */
function summaryOf(data: PageData, view: View, latency: LatencyCurves | undefined): string {
  const lanes = lanesOf(data, view, latency);
  const told = lanes.slice(0, 4).map(({ name, curve }) => `${name}: median ${reading(curve, 0.5).text}, 99 % ${reading(curve, 0.99).text}`);
  return `${told.join('; ')}.`;
}

function reading(curve: LatencyCurve, share: number): { value: number | null; text: string } {
  const time = timeAt(curve, share);
  if (time === null) return { value: null, text: 'too few requests' };
  return { value: time.us, text: `${time.atLeast ? 'at least ' : ''}${figure('microseconds', time.us)}` };
}

function timeAxis(lanes: readonly Lane[], log: boolean): Axis {
  const times = lanes.flatMap(({ curve }) => curve.points.map(([, us]) => us));
  // A time of 0 µs has no place on a log axis; one of a tenth stands for it.
  return log ? logAxis('microseconds', positive(times), 6) : linearAxis('microseconds', [0, Math.max(...times)], 5, true);
}

function byPercentile(kind: string, lanes: readonly Lane[], canvas: Canvas, log: boolean): Scene {
  const height = canvas.width < 480 ? 280 : 340;
  const yAxis = timeAxis(lanes, log);
  const box = boxOf(canvas.width, height, yAxis.ticks);
  const y: Scale = (log ? scaleLog() : scaleLinear()).domain(yAxis.domain).range([box.top + box.height, box.top]);
  const last = Math.max(...lanes.map(({ curve }) => nines(curve.points[curve.points.length - 1]?.[0] ?? 0)));
  const shown = stretchOf(canvas.stretch, (share) => share * Math.max(last, 0.5));
  const x = scaleLinear(shown, [box.left, box.left + box.width]);
  const xAxis: Axis = { domain: shown, ticks: ninesTicks(...shown, roomFor(box.width, 62)), title: '', log: true, fromZero: false };
  const placed = (points: readonly [number, number][]): Point[] => points.map(([share, us]) => [nines(share), us]);
  return sceneOf({ kind, lanes, box, height, x, y, yAxis, xAxis, placed, xName: 'share of requests, the tail widened (log scale)', readings: percentileReadings(lanes, x, y) });
}

function cumulative(kind: string, lanes: readonly Lane[], canvas: Canvas): Scene {
  const height = canvas.width < 480 ? 260 : 300;
  const yAxis = linearAxis('share', [0, 1], 5, true);
  const box = boxOf(canvas.width, height, yAxis.ticks);
  const y = scaleLinear(yAxis.domain, [box.top + box.height, box.top]);
  const times = logAxis('microseconds', positive(lanes.flatMap(({ curve }) => curve.points.map(([, us]) => us))), 6);
  const whole = scaleLog(times.domain, [0, 1]);
  const shown = stretchOf(canvas.stretch, (share) => whole.invert(share));
  const x = scaleLog(shown, [box.left, box.left + box.width]);
  const xAxis = logTicks('microseconds', shown, roomFor(box.width, 56));
  const placed = (points: readonly [number, number][]): Point[] => points.filter(([, us]) => us > 0).map(([share, us]) => [us, share]);
  return sceneOf({ kind: 'requests done', lanes, box, height, x, y, yAxis, xAxis, placed, xName: kind, readings: cumulativeReadings(lanes, shown, x, y) });
}

interface Parts {
  kind: string;
  lanes: readonly Lane[];
  box: Box;
  height: number;
  x: Place;
  y: Place;
  yAxis: Axis;
  xAxis: Axis;
  /** Points of a curve as places along both axes. */
  placed: (points: readonly [number, number][]) => Point[];
  xName: string;
  readings: Readings;
}

function sceneOf({ kind, lanes, box, height, x, y, yAxis, xAxis, placed, xName, readings }: Parts): Scene {
  const clip = freshId('clip');
  const inside = svg('g', { 'clip-path': `url(#${clip})` });
  lanes.forEach(({ variant, curve }, index) => {
    const { known, atLeast } = parts(curve);
    const many = dense(lanes.length, 0);
    const group = laneGroup(index, variant, many);
    group.append(path(placed(known), x, inFrame(y, yAxis), 'curve', dashOf(variant)));
    if (atLeast.length > 0) group.append(path(placed(atLeast), x, inFrame(y, yAxis), 'curve at-least'));
    // Marks at a few places, so that lines are known without their colours.
    const marked = many ? [] : placed(markedPoints(curve));
    for (const [at, value] of marked) if (value !== null) group.append(markAt(variant, x(at), inFrame(y, yAxis)(value), 30));
    inside.append(group);
  });
  const bounded = lanes.some(({ curve }) => parts(curve).atLeast.length > 0);
  return {
    height,
    content: [clipTo(box, clip), drawY(box, yAxis, y, kind), drawX(box, xAxis, x, xName), inside],
    box,
    readings,
    legend: lanes.map(({ variant, name }) => ({ variant, name })),
    notes: bounded ? [DOTTED] : [],
  };
}

/** What lies below a log axis, as 0 µs does, is drawn at its lower end. */
function inFrame(y: Place, { domain, log }: Axis): Place {
  return (value) => y(log ? Math.max(value, domain[0]) : value);
}

function markedPoints(curve: LatencyCurve): [number, number][] {
  return [0.5, 0.9, 0.99, 0.999, 0.9999].flatMap((share) => {
    const point = pointAt(curve, share);
    return point === undefined ? [] : [point];
  });
}

function percentileReadings(lanes: readonly Lane[], x: Place, y: Place): Readings {
  const shares = stops(lanes.map(({ curve }) => curve));
  const places = shares.map((share) => x(nines(share)));
  const at = (lane: Lane, column: number): ReturnType<typeof reading> => reading(lane.curve, shares[column] ?? 0);
  return {
    columns: shares.length,
    lanes: lanes.length,
    nearest: (atX, atY) => {
      const column = nearestPlace(places, atX);
      return { column, lane: nearestLane(lanes.map((lane) => at(lane, column).value).map((us) => (us === null ? null : y(us))), atY) };
    },
    tell: ({ column, lane }) => {
      const readings = lanes.map((one) => ({ ...one, ...at(one, column) }));
      const own = readings[lane]?.value ?? null;
      return tellAll(readings, lane, `${percentile(shares[column] ?? 0)} of requests took at most`, { x: places[column] ?? 0, y: own === null ? null : y(own) });
    },
  };
}

function cumulativeReadings(lanes: readonly Lane[], domain: [number, number], x: Place, y: Place): Readings {
  const times = timesToStop(...domain);
  const places = times.map((us) => x(us));
  const at = (lane: Lane, column: number): { value: number; text: string } => {
    const { share, atMost } = shareAt(lane.curve, times[column] ?? 0);
    const digits = share > 0.99 && share < 1 ? percentile(share) : `${grouped(share * 100, 1)} %`;
    return { value: share, text: `${atMost ? 'at most ' : ''}${digits}` };
  };
  return {
    columns: times.length,
    lanes: lanes.length,
    nearest: (atX, atY) => {
      const column = nearestPlace(places, atX);
      return { column, lane: nearestLane(lanes.map((lane) => y(at(lane, column).value)), atY) };
    },
    tell: ({ column, lane }) => {
      const readings = lanes.map((one) => ({ ...one, ...at(one, column) }));
      const own = readings[lane]?.value ?? null;
      return tellAll(readings, lane, `done within ${figure('microseconds', times[column] ?? 0)}`, { x: places[column] ?? 0, y: own === null ? null : y(own) });
    },
  };
}
