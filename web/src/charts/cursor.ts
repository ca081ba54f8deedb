// The cursor of a chart: which figures it goes through, and where keys lead it. Pure.

/** Figures that a cursor goes through: along the axis by columns, across it by lanes. */
export interface Readings {
  columns: number;
  lanes: number;
  /** Whether columns lie below each other, as rows do. */
  upright?: boolean;
  /** The figure nearest to a place; `null` where none is near. */
  nearest(x: number, y: number): Cursor | null;
  tell(cursor: Cursor): Told;
}

export interface Cursor {
  column: number;
  lane: number;
}

/** A figure in words, and its place. */
export interface Told {
  x: number;
  /** `null` where the cursor is only a line. */
  y: number | null;
  title: string;
  /** A variant's swatch stands before its line. */
  lines: { text: string; variant?: number; strong?: boolean }[];
  /** What a screen reader says, shorter than the tip. */
  spoken: string;
}

/** Where a key moves the cursor; `null` for a key that moves nothing. The first key of all puts it at the begin. */
export function step(from: Cursor | null, key: string, { columns, lanes, upright }: Pick<Readings, 'columns' | 'lanes' | 'upright'>): Cursor | null {
  const along: Record<string, number> = upright
    ? { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10 }
    : { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };
  const across: Record<string, number> = upright ? { ArrowLeft: -1, ArrowRight: 1 } : { ArrowUp: -1, ArrowDown: 1 };
  const last = columns - 1;
  if (key === 'Home' || key === 'End') return { column: key === 'Home' ? 0 : last, lane: from?.lane ?? 0 };
  const [ahead, aside] = [along[key], across[key]];
  if (ahead === undefined && aside === undefined) return null;
  if (from === null) return { column: 0, lane: 0 };
  const column = Math.min(last, Math.max(0, from.column + (ahead ?? 0)));
  return { column, lane: lanes > 0 ? (from.lane + (aside ?? 0) + lanes) % lanes : 0 };
}
