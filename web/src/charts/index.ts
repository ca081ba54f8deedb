// The charts of the report page. Each is made from the page's data and the view, and from then on keeps itself up to date: it
// draws anew when the view or its width changes. charts.css must be on the page.

export { blockRatios } from './block-ratios';
export { blockSeries } from './block-series';
export { effectsPlot } from './effects';
export { errorBars } from './errors';
export { interactionPlot } from './interaction';
export { cumulativePlot, percentilePlot } from './latencies';
export { swatch } from './marks';
export { memoryPlot } from './memory';
export { timeLine } from './time-line';
