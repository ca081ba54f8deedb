// Fewer points where a line has more than the screen has columns. Extremes and gaps stay: a spike that the record shows must
// not vanish from the picture. Pure.

/** A place along the axis and the figure there; `null` where there is none. */
export type Point = [number, number | null];

/**
 * At most about five points a column: its first, lowest, highest and last, and one gap if it has any. Points must be in order
 * of their places. Returns the very same points, none is made up.
 */
export function thin(points: readonly Point[], columns: number): readonly Point[] {
  if (points.length <= columns * 2) return points;
  const first = points[0]?.[0] ?? 0;
  const width = ((points[points.length - 1]?.[0] ?? 0) - first || 1) / columns;
  const kept: Point[] = [];
  let at = 0;
  while (at < points.length) {
    const column = Math.floor(((points[at] as Point)[0] - first) / width);
    let end = at;
    while (end < points.length && Math.floor(((points[end] as Point)[0] - first) / width) === column) end += 1;
    for (const index of tellingOnes(points, at, end)) kept.push(points[index] as Point);
    at = end;
  }
  return kept;
}

/** Indices of the points from `begin` to before `end` that a column must show, in order. */
function tellingOnes(points: readonly Point[], begin: number, end: number): number[] {
  let low = -1;
  let high = -1;
  let gap = -1;
  for (let index = begin; index < end; index += 1) {
    const value = (points[index] as Point)[1];
    if (value === null) {
      gap = index;
      continue;
    }
    if (low < 0 || value < ((points[low] as Point)[1] as number)) low = index;
    if (high < 0 || value > ((points[high] as Point)[1] as number)) high = index;
  }
  const kept = new Set([begin, low, high, gap, end - 1].filter((index) => index >= 0));
  return [...kept].sort((a, b) => a - b);
}
