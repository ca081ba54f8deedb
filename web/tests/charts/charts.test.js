// The charts without a page: that axes hold all they must, that nothing vanishes or is made up, and that units are right.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

let charts;

before(async () => {
  const entry = fileURLToPath(new URL('pure.ts', import.meta.url));
  const settings = { write: false, minify: false, lib: { entry, formats: ['es'] } };
  const built = await build({ configFile: false, logLevel: 'error', publicDir: false, build: settings });
  const [{ code }] = [built].flat()[0].output;
  charts = await import(`data:text/javascript;base64,${Buffer.from(code).toString('base64')}`);
});

const NONE_HIDDEN = { hidden: () => false, pair: null };
const variants = (...names) => names.map((name) => ({ name }));

describe('colours and marks', () => {
  it('stand out from both backgrounds by 3:1', () => {
    for (const { name, light, dark } of charts.HUES) {
      assert.ok(charts.contrast(light, charts.BACKGROUNDS.light) >= 3, `${name} on light`);
      assert.ok(charts.contrast(dark, charts.BACKGROUNDS.dark) >= 3, `${name} on dark`);
    }
    assert.equal(charts.contrast('#000000', '#ffffff'), 21);
  });

  it('are the same in the style sheet', () => {
    const css = readFileSync(new URL('../../src/charts/charts.css', import.meta.url), 'utf8');
    const inCss = (index) => [...css.matchAll(new RegExp(`--series-${index}: (#[0-9a-f]{6});`, 'g'))].map(([, colour]) => colour);
    charts.HUES.forEach(({ light, dark }, index) => assert.deepEqual(inCss(index), [light, dark]));
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
    assert.deepEqual(charts.marginBand(0.25), [0.8, 1.25]);
    assert.equal(charts.marginBand(0), null);
  });

  it('is not torn apart by an interval without end', () => {
    for (const bad of [ratio(0, 1.1, Infinity), ratio(NaN, 1.1, null)]) {
      const [low, high] = charts.ratioDomain([bad], 0.03);
      assert.ok(low > 0.9 && high < 1.2, `${low} ${high}`);
    }
  });

  it('has per cent near no change and factors beyond, all within it', () => {
    const labels = (low, high, about = 6) => charts.ratioAxis([low, high], about).ticks.map(({ label }) => label);
    assert.deepEqual(labels(0.88, 1.13), ['−10 %', '−5 %', 'no change', '+5 %', '+10 %']);
    assert.deepEqual(labels(0.995, 1.0065), ['−0.4 %', '−0.2 %', 'no change', '+0.2 %', '+0.4 %', '+0.6 %']);
    assert.deepEqual(labels(0.2, 9), ['×0.25', '×0.5', 'no change', '×2', '×4', '×8']);
    assert.deepEqual(labels(1e-4, 1e6, 6), ['×0.0001', '×0.01', 'no change', '×100', '×10,000', '×1,000,000']);
    for (const [low, high] of [[0.9999, 1.0001], [0.5, 1.2], [0.97, 3], [0.001, 1.1], [0.99, 1e9], [0.9, 3.3], [0.45, 2.2]]) {
      const { ticks } = charts.ratioAxis([low, high], 6);
      assert.ok(ticks.length >= 2 && ticks.length <= 12, `${low} to ${high}: ${ticks.length}`);
      const apart = ticks.slice(1).map(({ at }, index) => Math.log(at / ticks[index].at) / Math.log(high / low));
      assert.ok(Math.min(...apart) > 0.09, `${low} to ${high}: words touch`);
      assert.ok(ticks.every(({ at }) => at >= low * 0.999999 && at <= high * 1.000001));
      assert.equal(new Set(ticks.map(({ label }) => label)).size, ticks.length, `${low} to ${high} has a label twice`);
    }
  });
});

describe('axes of figures', () => {
  it('begin at zero where asked, and where leaving it out would exaggerate', () => {
    assert.equal(charts.linearAxis('per_second', [900, 1000], 5, true).domain[0], 0);
    assert.equal(charts.linearAxis('per_second', [100, 1000], 5, false).domain[0], 0);
    const cut = charts.linearAxis('per_second', [900, 1000], 5, false);
    assert.ok(cut.domain[0] > 0 && !cut.fromZero);
  });

  it('hold all figures, whatever their size, and never say the same twice', () => {
    for (const unit of ['per_second', 'microseconds', 'bytes', 'share', 'count', 'cores']) {
      for (const span of [null, [0, 0], [5, 5], [1e-7, 3e-7], [0, 1], [0.999, 1.001], [3, 5e12], [-2, 7]]) {
        const { domain, ticks } = charts.linearAxis(unit, span, 5, false);
        assert.ok(domain[0] < domain[1], `${unit} ${span}`);
        if (span !== null) assert.ok(domain[0] <= span[0] && domain[1] >= span[1], `${unit} ${span} in ${domain}`);
        assert.ok(ticks.length >= 2, `${unit} ${span}`);
        assert.equal(new Set(ticks.map(({ label }) => label)).size, ticks.length, `${unit} ${span}: ${ticks.map(({ label }) => label)}`);
      }
    }
  });

  it('have one unit', () => {
    const axis = charts.linearAxis('microseconds', [0, 42_000], 5, true);
    assert.deepEqual(axis.ticks.map(({ label }) => label), ['0', '10', '20', '30', '40', '50']);
    assert.equal(axis.title, 'ms');
    assert.equal(charts.linearAxis('bytes', [0, 250e6], 5, true).title, 'MB');
    assert.equal(charts.linearAxis('share', [0, 0.4], 5, true).ticks[1].label, '10');
  });

  it('are logarithmic with decades, and say so', () => {
    const axis = charts.logAxis('microseconds', [90, 2_000_000], 6);
    assert.match(axis.title, /log scale/);
    assert.deepEqual(axis.ticks.filter(({ label }) => label).map(({ label }) => label), ['0.1', '1', '10', '100', '1,000']);
    assert.ok(axis.domain[0] < 90 && axis.domain[1] > 2_000_000);
    assert.deepEqual(charts.logAxis('microseconds', [400, 9000], 4).ticks.filter(({ label }) => label).map(({ label }) => label), ['1', '3']);
    assert.ok(charts.logAxis('microseconds', [100, 130], 6).ticks.length >= 3, 'a narrow one has ticks too');
    assert.ok(charts.logAxis('microseconds', [1, 1e15], 5).ticks.filter(({ label }) => label).length <= 6);
    assert.equal(charts.positive([0, null, -3]), null);
  });

  it('of blocks have no tick between two', () => {
    assert.deepEqual(charts.wholeAxis([0.4, 3.6], 8).ticks.map(({ at }) => at), [1, 2, 3]);
  });
});

describe('thinning', () => {
  it('keeps extremes, ends and gaps, and makes nothing up', () => {
    const points = Array.from({ length: 10_000 }, (_, at) => [at, Math.sin(at)]);
    points[4321] = [4321, 99];
    points[1234] = [1234, -99];
    points[7777] = [7777, null];
    const kept = charts.thin(points, 100);
    assert.ok(kept.length < 600);
    for (const index of [0, 1234, 4321, 7777, 9999]) assert.ok(kept.includes(points[index]), `point ${index}`);
    assert.ok(kept.every((point) => points.includes(point)));
    assert.ok(kept.every(([at], index) => index === 0 || at > kept[index - 1][0]));
  });
});

describe('distributions', () => {
  const curve = { requests: 1000, censored: 20, at_least_from: 0.98, points: [[0.5, 100], [0.9, 200], [0.97, 900], [0.98, 5000], [0.99, 9000]] };

  it('are cut where values become lower bounds, without a hole', () => {
    const { known, atLeast } = charts.parts(curve);
    assert.deepEqual(known.at(-1), [0.97, 900]);
    assert.deepEqual(atLeast, [[0.97, 900], [0.98, 5000], [0.99, 9000]]);
    assert.deepEqual(charts.parts({ ...curve, at_least_from: null }).atLeast, []);
    assert.deepEqual(charts.parts({ ...curve, at_least_from: 0 }).known, []);
  });

  it('tell a time that was measured, and none beyond the last', () => {
    assert.deepEqual(charts.timeAt(curve, 0.95), { us: 900, atLeast: false });
    assert.deepEqual(charts.timeAt(curve, 0.99), { us: 9000, atLeast: true });
    assert.equal(charts.timeAt(curve, 0.999), null);
    assert.deepEqual(charts.shareAt(curve, 6000), { share: 0.98, atMost: true });
    assert.deepEqual(charts.shareAt(curve, 250), { share: 0.9, atMost: false });
  });

  it('give each nine the same room', () => {
    const places = [0, 0.9, 0.99, 0.999].map(charts.nines);
    places.forEach((place, index) => assert.ok(Math.abs(place - index) < 1e-9));
    const labels = charts.ninesTicks(0, 4, 6).map(({ label }) => label).filter(Boolean);
    assert.deepEqual(labels, ['50 %', '90 %', '99 %', '99.9 %', '99.99 %']);
    assert.ok(charts.ninesTicks(0, 3, 12).some(({ label }) => label === '50 %'));
    assert.equal(charts.percentile(0.9995), '99.95 %');
  });
});

describe('variants that are hidden', () => {
  const view = { hidden: (variant) => variant === 1, pair: null };
  const series = { metric: 'peak memory', unit: 'bytes', blocks: [1, 2, 3], dropped: [2], values: [[10, 99, 30], [5, 5, 5], [null, null, null]] };
  const errors = [0, 1].map((variant) => ({ variant, phase: 'head', cause: 'x', count: 1, requests: 10, example: null }));
  const data = { variants: variants('a', 'b', 'c'), series: [series], errors };

  it('are gone, and so are those without figures', () => {
    assert.deepEqual(charts.shownOf(data, view, (variant) => charts.hasFigures(series, variant)).map(({ name }) => name), ['a']);
    assert.deepEqual(charts.memoryRows(data, view).map(({ name, median }) => [name, median]), [['a', 20]]);
    const { rows, hidden } = charts.errorRows(data, view);
    assert.deepEqual([rows.length, hidden], [1, 1]);
    assert.equal(charts.memoryRows(data, NONE_HIDDEN).length, 2);
  });

  it('leave dropped blocks apart from those that count', () => {
    const lane = charts.laneOf(series, 0);
    assert.deepEqual(lane, { counted: [[1, 10], [3, 30]], dropped: [[2, 99]] });
  });
});

describe('effects', () => {
  it('that are void have no number, whatever the record says', () => {
    const ratio = { low: 1, estimate: 2, high: 3 };
    const lines = ['void', 'no_success', 'better'].map((outcome) => ({ label: '', interaction: false, outcome, word: '', detail: '', ratio }));
    const groups = charts.effectGroups([...lines, { ...lines[0], interaction: true }], true);
    assert.deepEqual(groups.map(({ rows }) => rows.map((row) => row.ratio)), [[null, null, ratio], [null]]);
    assert.deepEqual(groups.map(({ moreIsBetter }) => moreIsBetter), [true, null], 'that an effect depends is neither good nor bad');
  });
});

describe('a trial over time', () => {
  const trial = { variant: 0, block: 1, at_s: [0, 0.5, 1, 5, 5.5], lasts_s: [0.5, 0.5, 0.5, 0.5, 0.5], warm_up: 2, rate_per_s: [1, 2, 3, 4, 5] };

  it('shows gaps as gaps', () => {
    assert.deepEqual(charts.runsOf(trial, trial.rate_per_s).map((run) => run.length), [3, 2]);
    assert.deepEqual(charts.runsOf(trial, [1, null, 3, 4, null]).map((run) => run.length), [1, 1, 1]);
    assert.deepEqual(charts.runsOf(trial, [null, null, null, null, null]), []);
  });

  it('shades its warm-up and nothing else', () => {
    assert.deepEqual(charts.spanOf(trial), { warm: 1, end: 6 });
    assert.equal(charts.spanOf({ ...trial, warm_up: 0 }).warm, 0);
    assert.equal(charts.spanOf({ ...trial, warm_up: 5 }).warm, 6);
  });
});

describe('figures', () => {
  it('have the unit and the digits of the other reports', () => {
    const { figure } = charts;
    assert.deepEqual([figure('per_second', 52_267), figure('per_second', 6.46), figure('per_second', 0)], ['52,300/s', '6.46/s', '0/s']);
    assert.deepEqual([figure('microseconds', 812.3), figure('microseconds', 81_230), figure('microseconds', 2.5e7)], ['812 µs', '81.2 ms', '25.0 s']);
    assert.deepEqual([figure('bytes', 134_054), figure('bytes', 12), figure('share', 0.0231)], ['134 kB', '12 B', '2.31 %']);
    assert.deepEqual([figure('cores', 1.024), figure('count', 1200), figure('count', null)], ['1.02 cores', '1,200', '–']);
    assert.equal(figure('share', 1e-6), '0.000100 %');
  });

  it('of intervals have the digits that their width deserves', () => {
    const { interval } = charts;
    assert.equal(interval({ estimate: 1.012, low: 0.9, high: 1.12 }), '+1 % (−10 % to +12 %)');
    assert.equal(interval({ estimate: 0.9996, low: 0.99, high: 1.01 }), '±0.0 % (−1.0 % to +1.0 %)');
    assert.equal(interval({ estimate: 16.54, low: 15.2, high: 18 }), '×16.5 (×15.2 to ×18.0)');
    assert.equal(interval({ estimate: 0.0607, low: 0.0585, high: 0.0631 }), '×0.0607 (×0.0585 to ×0.0631)');
  });
});

describe('the cursor and the zoom', () => {
  it('stay within what there is', () => {
    const readings = { columns: 3, lanes: 2 };
    assert.deepEqual(charts.step(null, 'ArrowRight', readings), { column: 0, lane: 0 });
    assert.deepEqual(charts.step({ column: 2, lane: 1 }, 'ArrowRight', readings), { column: 2, lane: 1 });
    assert.deepEqual(charts.step({ column: 2, lane: 1 }, 'ArrowDown', readings), { column: 2, lane: 0 });
    assert.deepEqual(charts.step({ column: 1, lane: 0 }, 'End', readings), { column: 2, lane: 0 });
    assert.equal(charts.step({ column: 1, lane: 0 }, 'Tab', readings), null);
    assert.deepEqual(charts.step({ column: 1, lane: 0 }, 'ArrowDown', { ...readings, upright: true }), { column: 2, lane: 0 });
  });

  it('zooms in and out and back', () => {
    assert.deepEqual(charts.between([0, 1], 0.75, 0.25), [0.25, 0.75]);
    assert.deepEqual(charts.by([0, 1], 0.5, 0.5), [0.25, 0.75]);
    assert.deepEqual(charts.by([0.25, 0.75], 2, 0.5), [0, 1]);
    assert.deepEqual(charts.moved([0, 0.5], -1), [0, 0.5]);
    assert.deepEqual(charts.moved([0, 0.5], 5), [0.5, 1]);
    assert.ok(charts.isWhole(charts.by([0, 0.9], 4, 0)));
  });
});

describe('words', () => {
  it('are cut to their room, wide scripts too', () => {
    assert.equal(charts.fit('short', 100, 12), 'short');
    const cut = charts.fit('服务器性能比较实验', 60, 12);
    assert.ok(cut.endsWith('…') && charts.widthOf(cut, 12) <= 60);
  });
});
