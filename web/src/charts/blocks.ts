// A metric block by block, as lanes: what counts, and what was dropped. Pure.

import type { BlockSeries } from '../model';
import type { Point } from './thin';

/** A variant's figures along the blocks. */
export interface BlockLane {
  /** Blocks that count; a gap where the variant has no figure. Dropped blocks are not gaps, the line goes on behind them. */
  counted: Point[];
  /** Figures of dropped blocks, which are shown and count for nothing. */
  dropped: [number, number][];
}

export function laneOf(series: BlockSeries, variant: number): BlockLane {
  const droppedOnes = new Set(series.dropped);
  const lane: BlockLane = { counted: [], dropped: [] };
  series.blocks.forEach((block, index) => {
    const value = series.values[variant]?.[index] ?? null;
    if (!droppedOnes.has(block)) lane.counted.push([block, value]);
    else if (value !== null) lane.dropped.push([block, value]);
  });
  return lane;
}

export function hasFigures(series: BlockSeries, variant: number): boolean {
  return series.values[variant]?.some((value) => value !== null) ?? false;
}

/** Which series is meant: by its place or by its metric's name. */
export function seriesOf(all: readonly BlockSeries[], which: number | string): BlockSeries | undefined {
  return typeof which === 'number' ? all[which] : all.find(({ metric }) => metric === which);
}
