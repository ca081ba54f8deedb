// What the tests of the charts look at: all that needs no page.

export * from '../../src/charts/axis';
export * from '../../src/charts/blocks';
export { step } from '../../src/charts/cursor';
export { effectGroups } from '../../src/charts/effects';
export { errorRows } from '../../src/charts/errors';
export * from '../../src/charts/format';
export { shownOf } from '../../src/charts/lanes';
export { memoryRows } from '../../src/charts/memory';
export * from '../../src/charts/palette';
export * from '../../src/charts/percentiles';
export * from '../../src/charts/ratio-axis';
export { thin } from '../../src/charts/thin';
export * from '../../src/charts/trial';
export { fit, widthOf } from '../../src/charts/words';
export * from '../../src/charts/zoom';
