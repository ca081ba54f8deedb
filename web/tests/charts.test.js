// The charts without a page: that axes hold all they must, that nothing vanishes or is made up, and that units are right.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

let charts;

before(async () => {
  const entry = fileURLToPath(new URL('pure.ts', import.meta.url));
  const outDir = fileURLToPath(new URL('../dist/pure', import.meta.url));
  await build({ root: fileURLToPath(new URL('..', import.meta.url)), configFile: false, logLevel: 'error', publicDir: false, build: { outDir, minify: false, lib: { entry, formats: ['es'], fileName: () => 'pure.js' } } });
  charts = await import('../dist/pure/pure.js');
});

/** Contrast of two colours such as `#0072b2` after WCAG 2.2, from 1 to 21. */
function contrast(...colours) {
  const luminance = (colour) => {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255).map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [low, high] = colours.map(luminance).sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

describe('colours and marks', () => {
  it('stand out from both backgrounds by 3:1', () => {
    const css = (file) => readFileSync(new URL(`../src/style/${file}.css`, import.meta.url), 'utf8');
    const coloursOf = (text, name) => new RegExp(`--${name}: light-dark\\((#[0-9a-f]{6}), (#[0-9a-f]{6})\\);`).exec(text).slice(1);
    const grounds = coloursOf(css('page'), 'page');
    for (let hue = 0; hue < 8; hue += 1) {
      coloursOf(css('charts'), `series-${hue}`).forEach((colour, index) => assert.ok(contrast(colour, grounds[index]) >= 3, `${colour} on ${grounds[index]}`));
    }
    assert.equal(contrast('#000000', '#ffffff'), 21);
  });

  it('tell 64 variants apart, and the first eight by their marks alone', () => {
    const looks = Array.from({ length: 64 }, (_, variant) => charts.look(variant));
    assert.equal(new Set(looks.map((look) => JSON.stringify(look))).size, 64);
    assert.equal(new Set(looks.slice(0, 8).map(({ mark }) => mark)).size, 8);
  });
});

describe('the axis of ratios', () => {
  const ratio = (low, estimate, high) => ({ low, estimate, high });

  it('holds every interval, no change and the margin', () => {
    const [low, high] = charts.ratioDomain([ratio(0.2, 0.3, 0.4), ratio(1.5, 40, 900), null], 0.03);
    assert.ok(low < 0.2 && high > 900);
    const [near, far] = charts.ratioDomain([ratio(1.001, 1.002, 1.003)], 0.1);
    assert.ok(near < 1 / 1.1 && far > 1.1);
  });

  it('is not torn apart by an interval without end', () => {
    for (const bad of [ratio(0, 1.1, Infinity), ratio(NaN, 1.1, null)]) {
      const [low, high] = charts.ratioDomain([bad], 0.03);
      assert.ok(low > 0.9 && high < 1.2, `${low} ${high}`);
      const axis = charts.CellAxis.ofRatios([bad], 0.03);
      assert.deepEqual([axis.at(0), axis.at(Infinity)], [0, 100]);
    }
  });

  it('has per cent near no change and factors beyond, all within it', () => {
    const labels = (low, high, about = 6) => charts.ratioTicks(charts.logTicks(low, high, about));
    assert.deepEqual(labels(0.88, 1.13), ['−10 %', '−5 %', 'no change', '+5 %', '+10 %']);
    assert.deepEqual(labels(0.995, 1.0065), ['−0.4 %', '−0.2 %', 'no change', '+0.2 %', '+0.4 %', '+0.6 %']);
    assert.deepEqual(labels(0.2, 9), ['×0.2', '×0.5', 'no change', '×2', '×5']);
    assert.deepEqual(labels(1e-4, 1e6, 6), ['×0.0001', '×0.01', 'no change', '×100', '×10,000', '×1,000,000']);
    for (const [low, high] of [[0.9999, 1.0001], [0.5, 1.2], [0.97, 3], [0.001, 1.1], [0.99, 1e9], [0.9, 3.3], [0.45, 2.2]]) {
      const places = charts.logTicks(low, high, 6);
      assert.ok(places.length >= 2 && places.length <= 12, `${low} to ${high}: ${places.length}`);
      assert.ok(places.every((at) => at >= low * 0.999999 && at <= high * 1.000001));
      assert.equal(new Set(charts.ratioTicks(places)).size, places.length, `${low} to ${high} has a label twice`);
    }
  });

  it('shows no number of what is invalid, whatever the record says', () => {
    const shown = ['invalid', 'no_success', 'better'].map((outcome) => charts.ratioOf({ outcome, ratio: ratio(1, 2, 3) }));
    assert.deepEqual(shown, [null, null, ratio(1, 2, 3)]);
  });
});

describe('axes of figures', () => {
  it('never say the same twice', () => {
    for (const [low, high] of [[0, 1], [1e-7, 3e-7], [0.999, 1.001], [3, 5e12], [-2, 7]]) {
      const labels = charts.decimal(charts.linearTicks(low, high, 5));
      assert.ok(labels.length >= 2 && new Set(labels).size === labels.length, `${low} to ${high}: ${labels}`);
    }
    assert.deepEqual(charts.decimal([0, 0.5, 1]), ['0.0', '0.5', '1.0']);
  });

  it('are logarithmic with as many ticks as there is room for', () => {
    assert.deepEqual(charts.logTicks(0.09, 2000, 6), [0.1, 1, 10, 100, 1000]);
    assert.ok(charts.logTicks(100, 130, 6).length >= 3, 'a narrow one has ticks too');
    assert.ok(charts.logTicks(1, 1e15, 5).length <= 8);
  });

  it('of blocks have no tick between two', () => {
    assert.deepEqual(charts.wholeTicks(0.4, 3.6, 3), [1, 2, 3]);
  });

  it('of amounts begin at zero', () => {
    const axis = charts.CellAxis.ofAmounts('bytes', [90e6, 60e6]);
    assert.ok(axis.at(0) === 0 && axis.at(90e6) > 80 && axis.at(90e6) <= 100);
    assert.equal(charts.CellAxis.ofAmounts('share', []).at(0), 0);
  });
});

describe('distributions', () => {
  const curve = { requests: 1000, censored: 20, at_least_from: 0.98, points: [[0.5, 100], [0.9, 200], [0.97, 900], [0.98, 5000], [0.99, 9000]] };
  const placed = (one) => charts.placed(one, (share, us) => [share, us]);

  it('are cut where values become lower bounds, without a hole', () => {
    const [columns, known, bounds] = placed(curve);
    assert.deepEqual(columns, [0.5, 0.9, 0.97, 0.98, 0.99]);
    assert.deepEqual([known, bounds], [[100, 200, 900, null, null], [null, null, 900, 5000, 9000]]);
    assert.deepEqual(placed({ ...curve, at_least_from: null })[2], Array(5).fill(null));
    assert.deepEqual(placed({ ...curve, at_least_from: 0 })[1], Array(5).fill(null));
  });

  it('have one height at a time, and none at no time', () => {
    const points = [[0.1, 0], [0.5, 100], [0.6, 100], [0.9, 300]];
    const [columns, known] = charts.placed({ ...curve, at_least_from: null, points }, (share, us) => [us, share]);
    assert.deepEqual([columns, known], [[100, 300], [0.6, 0.9]]);
  });

  it('tell a time that was measured, and none beyond the last', () => {
    assert.deepEqual(charts.timeAt(curve, 0.95), { us: 900, atLeast: false });
    assert.deepEqual(charts.timeAt(curve, 0.99), { us: 9000, atLeast: true });
    assert.equal(charts.timeAt(curve, 0.999), null);
    assert.deepEqual(charts.shareAt(curve, 6000), { share: 0.98, atMost: true });
    assert.deepEqual(charts.shareAt(curve, 250), { share: 0.9, atMost: false });
  });

  it('are told of the variants that have one, not as zeros of those beyond the first', () => {
    const { rows } = charts.quantiles(['a', 'b'], { curves: [curve, { requests: 0, censored: 0, at_least_from: null, points: [] }] });
    assert.deepEqual(rows.map(([name, requests, given, median]) => [name, requests, given, median]), [['a', '1,000', '20', '100']]);
  });

  it('give each nine the same room', () => {
    const places = [0, 0.9, 0.99, 0.999].map(charts.nines);
    places.forEach((place, index) => assert.ok(Math.abs(place - index) < 1e-9));
    assert.deepEqual(charts.ninesTicks(0, 4, 6).map((at) => charts.percentile(Number((1 - 10 ** -at).toPrecision(9)))), ['50 %', '90 %', '99 %', '99.9 %', '99.99 %']);
    assert.ok(charts.ninesTicks(0, 3, 12).includes(charts.nines(0.5)));
    assert.equal(charts.percentile(0.9995), '99.95 %');
  });
});

describe('blocks', () => {
  const series = { metric: 'peak memory', unit: 'bytes', blocks: [1, 2, 3], dropped: [{ block: 2, why: 'the run was stopped' }], values: [[10, 99, 30], [5, null, 5], [null, null, null]] };

  it('that were dropped are apart from those that count, and a line goes on behind them', () => {
    const [line, apart] = charts.linesOf(series, 0, 'a');
    assert.deepEqual([line.heights, apart.heights], [[10, undefined, 30], [undefined, 99, undefined]]);
    assert.deepEqual(charts.linesOf(series, 2, 'c'), []);
    const [gap] = charts.linesOf({ ...series, dropped: [] }, 1, 'b');
    assert.deepEqual(gap.heights, [5, null, 5], 'a gap stays a gap');
  });

  it('of memory count but those that were dropped', () => {
    const rows = charts.memoryRows({ variants: ['a', 'b', 'c'].map((name) => ({ name })) }, series);
    assert.deepEqual(rows.map(({ name, median, values }) => [name, median, values]), [['a', 20, [10, 30]], ['b', 5, [5, 5]]]);
  });
});

describe('a trial over time', () => {
  it('shows gaps as gaps, and each point for as long as it lasted', () => {
    const { columns, points } = charts.stepsOf({ at_s: [0, 0.5, 5], lasts_s: [0.5, 0.5, 0.5] });
    assert.deepEqual(columns, [0, 0.5, 0.5, 1, 3, 5, 5.5]);
    assert.deepEqual(points, [0, 0, 1, 1, null, 2, 2]);
  });

  it('has no gap where slices follow each other with a breath, and never goes back', () => {
    const { columns, points } = charts.stepsOf({ at_s: [0, 0.52, 1.0], lasts_s: [0.5, 0.5, 0.5] });
    assert.ok(!points.includes(null));
    assert.ok(columns.every((at, index) => index === 0 || at >= columns[index - 1]), `${columns}`);
  });
});

describe('the choice of variants', () => {
  it('begins with those that are compared, and a pair leaves out all others', () => {
    const view = new charts.View(20, [[0, 15]]);
    const shown = () => Array.from({ length: 20 }, (_, variant) => variant).filter((variant) => !view.hidden(variant));
    assert.deepEqual(shown(), [0, 1, 2, 3, 4, 5, 6, 15]);
    view.setPair([3, 9]);
    assert.deepEqual(shown(), [3, 9]);
    view.setHidden([0], true);
    assert.deepEqual(shown(), [1, 2, 3, 4, 5, 6, 15]);
  });
});

describe('figures', () => {
  it('have the unit and the digits of the other reports', () => {
    const { figure } = charts;
    assert.deepEqual([figure('per_s', 52_267), figure('per_s', 6.46), figure('per_s', 0), figure('per_s', 2.5e7)], ['52,300/s', '6.46/s', '0/s', '25,000,000/s']);
    assert.deepEqual([figure('us', 812.3), figure('us', 5000), figure('us', 999.7), figure('us', 2.5e7)], ['812 µs', '5.00 ms', '1.00 ms', '25.0 s']);
    assert.deepEqual([figure('us', 9.996), figure('us', 99.96), figure('number', 0.9996)], ['10.0 µs', '100 µs', '1.00']);
    assert.deepEqual([figure('bytes', 134_054), figure('bytes', 12), figure('share', 0.0231)], ['134 kB', '12 B', '2.31 %']);
    assert.deepEqual([figure('number', 1.024), figure('count', 1200), figure('count', null)], ['1.02', '1,200', '–']);
    assert.equal(figure('share', 1e-6), '0.000100 %');
    assert.deepEqual([1, 0.9996, 0.999996, 0.03, 5e-6, 0].map(charts.share), ['100 %', '99.96 %', '99.9996 %', '3 %', '0.0005 %', '0 %']);
    assert.deepEqual([charts.grouped(-1234.5, 1), charts.grouped(-0.01, 1)], ['−1,234.5', '0.0']);
  });

  it('of ratios are per cent near no change and factors beyond', () => {
    const { ratio } = charts;
    assert.deepEqual([ratio(1.123), ratio(0.9996), ratio(1), ratio(16.54), ratio(0.0607), ratio(NaN)], ['+12.3 %', '−0.04 %', '±0.00 %', '×16.5', '×0.061', '–']);
  });
});
