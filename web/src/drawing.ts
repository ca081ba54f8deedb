// What uPlot is told of a chart's axes, lines, marks and shades, in the colours of the style sheet.

import uPlot from 'uplot';
import type { Axis, Line, Shade } from './chart';
import { element } from './elements';
import { look, markOf } from './looks';
import { decimal, linearTicks, logTicks, scaled } from './numbers';

/** The axis' name, its unit, and what must be known to read lengths on it. */
export function nameOf({ name, unit, log }: Axis, scale: uPlot.Scale | undefined): string {
  const { min = 0, max = 0 } = scale ?? {};
  const step = unit ? scaled(unit, max).name.replace('/s', ' per second').trim() : '';
  const cut = unit && !log && min > 0 ? 'does not start at 0' : '';
  return [name, step, log ? 'log scale' : '', cut].filter((part) => part !== '').join(', ');
}

/** From zero where asked, and where zero is so near that leaving it out would only exaggerate. */
export function rangeOf({ domain, log, zero }: Axis, low: number | null, high: number | null): [number, number] {
  if (domain) return domain;
  if (low === null || high === null) return log ? [1, 10] : [0, 1];
  // A little air, so that no line runs on the frame.
  if (log) return [low / Math.max(1.02, (high / low) ** 0.03), high * Math.max(1.02, (high / low) ** 0.03)];
  const fromZero = low >= 0 && (zero || low < 0.3 * high || high === 0);
  const air = (fromZero ? high : high - low) * 0.06 || Math.abs(high) * 0.02 || 1;
  return [fromZero ? 0 : low - air, high + air];
}

export function drawnAxis(axis: Axis): uPlot.Axis {
  const { unit } = axis;
  const text = axis.labels ?? ((places) => {
    const { factor } = scaled(unit ?? 'count', Math.max(...places));
    const figures = places.map((place) => place / factor);
    return axis.log ? figures.flatMap((one) => decimal([one])) : decimal(figures);
  });
  return {
    font: `12px ${getComputedStyle(document.body).fontFamily}`,
    stroke: () => colour('--faint'),
    grid: { stroke: () => colour('--plot-grid'), width: 1 },
    ticks: { stroke: () => colour('--edge'), width: 1, size: 4 },
    gap: 4,
    splits: (plot, index, low, high) => {
      const room = index === 0 ? plot.over.clientWidth || plot.width - 80 : plot.height - 30;
      const about = Math.max(2, Math.floor(room / (index === 0 ? 70 : 40)));
      return (axis.ticks ?? (axis.log ? logTicks : linearTicks))(low, high, about);
    },
    filter: (_, places) => places,
    values: (_, places) => text(places),
  };
}

/** As wide as the longest word on an upright axis. */
export function roomFor(_plot: uPlot, texts: string[] | null): number {
  return Math.max(20, ...(texts ?? []).map((text) => (text ?? '').length * 7)) + 14;
}

/** What the page's colours are tried on. */
let probe: HTMLElement | null = null;

/** What the style sheet says of a colour's variable, in the light or in the dark. */
export function colour(variable: string): string {
  probe ??= document.body.appendChild(element('i', { hidden: true }));
  probe.style.color = `var(${variable})`;
  return getComputedStyle(probe).color;
}

export function tinted(variable: string, strength: number): string {
  return colour(variable).replace('rgb(', 'rgba(').replace(')', `, ${strength})`);
}

export function shade(plot: uPlot, { axis, from, to, ink, strength = 1 }: Shade): void {
  const { left, top, width, height } = plot.bbox;
  const [begin, size] = axis === 'x' ? [left, width] : [top, height];
  const inside = (value: number): number => Math.min(begin + size, Math.max(begin, plot.valToPos(value, axis, true)));
  const [near, far] = [inside(from), inside(to)].sort((one, other) => one - other) as [number, number];
  // A line too far out must not stand at the edge.
  if (from === to && Math.abs(plot.valToPos(from, axis, true) - near) > 1) return;
  const thick = Math.max(from === to ? 1.5 * uPlot.pxRatio : 0, far - near);
  plot.ctx.fillStyle = tinted(ink, strength);
  if (axis === 'x') plot.ctx.fillRect(near, top, thick, height);
  else plot.ctx.fillRect(left, near, width, thick);
}

export function seriesOf({ variant, kind, heights, marked }: Line, plain: boolean): uPlot.Series {
  const { ink, dash } = look(variant);
  const own = (): string => colour(ink);
  const drawn = kind !== 'marks' && kind !== 'area';
  const there = (column: number): boolean => (heights[column] ?? null) !== null;
  // A line does not show what lies between two gaps.
  const alone = marked ?? heights.flatMap((_, at) => (there(at) && !there(at - 1) && !there(at + 1) ? [at] : []));
  const marks = kind === 'marks' || (kind === undefined && marked === undefined && !plain);
  return {
    width: drawn ? (kind === 'edge' || plain ? 1 : 1.75) : 0,
    ...(drawn && kind !== 'edge' ? { stroke: own } : {}),
    ...(kind === 'area' ? { fill: own } : {}),
    ...(kind === 'dotted' ? { dash: [0.1, 4], cap: 'round' as const } : dash.length > 0 ? { dash: [...dash] } : {}),
    ...(kind === 'marks' ? { paths: () => null } : {}),
    points: {
      ...(marks && kind === 'marks' ? { show: true } : marks ? {} : { show: false }),
      space: 12,
      filter: (_plot, _series, show) => (show || (plain && marked) ? null : [...alone]),
      width: kind === 'marks' ? 1.25 : 0.75,
      fill: kind === 'marks' ? () => colour('--page') : own,
      stroke: kind === 'marks' ? own : () => colour('--page'),
      paths: (plot, series, first, last, chosen) => marksOf(plot, series, chosen ?? [...plot.data[0].keys()].slice(first, last + 1), variant),
    },
  };
}

/** A variant's marks at some columns. */
function marksOf(plot: uPlot, series: number, columns: readonly number[], variant: number): uPlot.Series.Points.Paths {
  const { d, turn } = markOf(variant, 34);
  const [mark, all, clip] = [new Path2D(d), new Path2D(), new Path2D()];
  const { left, top, width, height } = plot.bbox;
  clip.rect(left - 6, top - 6, width + 12, height + 12);
  for (const column of columns) {
    const value = plot.data[series]?.[column];
    if (value == null) continue;
    const place = new DOMMatrix().translate(plot.valToPos(plot.data[0][column] ?? 0, 'x', true), plot.valToPos(value, 'y', true));
    all.addPath(mark, place.scale(uPlot.pxRatio).rotate(turn));
  }
  return { stroke: all, fill: all, clip, flags: 3 };
}
