// What stands where a chart has nothing to show: why, in words.

import type { Scene } from './frame';

export const ALL_HIDDEN = 'Nothing to show: none of the variants that are switched on has figures here.';

export function empty(width: number, why: string): Scene {
  return { height: 1, content: [], box: { left: 0, top: 0, width, height: 1 }, readings: null, notes: [why] };
}
