// What the tests of the charts look at: all that needs no page.

export { CellAxis, ratioDomain, ratioOf } from '../src/cells';
export { look } from '../src/looks';
export * from '../src/numbers';
export { linesOf, memoryRows, wholeTicks } from '../src/parts/blocks';
export { nines, ninesTicks, placed, quantiles, shareAt, timeAt } from '../src/parts/times';
export { stepsOf } from '../src/parts/trial';
export { View } from '../src/view';
