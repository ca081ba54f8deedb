// Which stretch of an axis is shown, as shares of its length: [0, 1] is all of it. Pure.

export type Stretch = readonly [number, number];

export const WHOLE: Stretch = [0, 1];
/** Nobody reads a thousandth of an axis. */
const LEAST = 0.001;

export function isWhole([from, to]: Stretch): boolean {
  return from <= 0 && to >= 1;
}

/** The stretch between two places of what is shown now, each 0 to 1 and in either order. */
export function between(shown: Stretch, one: number, other: number): Stretch {
  const length = shown[1] - shown[0];
  const inside = (at: number): number => shown[0] + Math.min(1, Math.max(0, at)) * length;
  return kept(inside(Math.min(one, other)), inside(Math.max(one, other)));
}

/** Shows `factor` times as much around a place of what is shown now, which stays where it is. */
export function by(shown: Stretch, factor: number, around: number): Stretch {
  const length = shown[1] - shown[0];
  const at = shown[0] + around * length;
  return kept(at - around * length * factor, at + (1 - around) * length * factor);
}

/** Moved by so much of what is shown. */
export function moved(shown: Stretch, share: number): Stretch {
  const length = shown[1] - shown[0];
  const from = Math.min(1 - length, Math.max(0, shown[0] + share * length));
  return [from, from + length];
}

function kept(from: number, to: number): Stretch {
  const length = Math.min(1, Math.max(LEAST, to - from));
  const begin = Math.min(1 - length, Math.max(0, from));
  return [begin, begin + length];
}

/** So many columns all of the axis would have, were it drawn as large as this stretch is. */
export function columnsOf([from, to]: Stretch, width: number): number {
  return width / (to - from);
}

/** The stretch of a domain that is shown, by a way from shares to values such as a scale's `invert`. */
export function stretchOf(shown: Stretch, valueAt: (share: number) => number): [number, number] {
  return [valueAt(shown[0]), valueAt(shown[1])];
}
