// Reads the interval log on standard input with hdr-histogram-js and writes what it finds there as a JSON array, one
// object for each line of the log. It must not know anything of Proofload: it stands for every other reader.
'use strict'
const { readFileSync } = require('node:fs')
const { HistogramLogReader } = require('hdr-histogram-js')

const COUNTER_BITS = 64

function * histograms (text) {
  const reader = new HistogramLogReader(text, COUNTER_BITS)
  for (;;) {
    const histogram = reader.nextIntervalHistogram()
    if (histogram === null) return
    yield histogram
  }
}

// The library tells a value by the upper end of its cell. The lower end is what the log was made of, to the nanosecond.
function summary (histogram) {
  const lower = value => histogram.lowestEquivalentValue(value)
  const percentile = p => lower(histogram.getValueAtPercentile(p))
  return {
    tag: histogram.tag,
    start_ms: histogram.startTimeStampMsec,
    end_ms: histogram.endTimeStampMsec,
    count: histogram.totalCount,
    min_ns: percentile(0),
    max_ns: lower(histogram.maxValue),
    mean_ns: histogram.mean,
    percentiles_ns: [50, 90, 99, 99.9].map(percentile)
  }
}

const text = readFileSync(0, 'utf8')
process.stdout.write(JSON.stringify(Array.from(histograms(text), summary)) + '\n')
