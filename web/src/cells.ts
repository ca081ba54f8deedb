// What is drawn in cells of a table: intervals, bars and marks, all on one axis, so that rows compare. Places are in per cent of
// the cell's width, so that nothing has to be measured or drawn anew.

import { scaleLinear, scaleLog } from 'd3-scale';
import { element, paragraph, svg, type Child } from './elements';
import { filterOf, footOf, scrolling } from './tables';
import type { Outcome, Ratio, Unit } from './model';
import { decimal, logTicks, NO_CHANGE, ratioTicks, scaled, share } from './numbers';

const HEIGHT = 28;
const THICK = 10;
/** Per cent of the width that a word takes in the narrowest column. */
const LABEL_ROOM = 27;

/** The axis of a column of drawings. */
export class CellAxis {
  readonly #ticks: { x: number; label: string }[] = [];

  /**
   * `at` says where a value stands, in per cent of the width; beyond the ends at the ends. `ground` stands behind each row.
   */
  private constructor(readonly at: (value: number) => number, places: readonly number[], labels: readonly string[], readonly ground: (axis: CellAxis) => SVGElement[]) {
    const ticks = places.map((place, index) => ({ x: this.at(place), label: labels[index] ?? '' }));
    // What has room beside each other, first of all the place that all others are read from.
    for (const { x, label } of ticks.sort((one, other) => Number(other.label === NO_CHANGE) - Number(one.label === NO_CHANGE))) {
      if (this.#ticks.every((other) => Math.abs(other.x - x) >= LABEL_ROOM)) this.#ticks.push({ x, label });
    }
  }

  /** Of ratios: logarithmic, because ×2 and ×0.5 are the same distance from no difference. The margin is a band behind the rows. */
  static ofRatios(ratios: Iterable<Ratio | null>, margin: number): CellAxis {
    const domain = ratioDomain(ratios, margin);
    const scale = scaleLog(domain, [0, 100]).clamp(true);
    const places = logTicks(...domain, 8);
    return new CellAxis((value) => scale(Math.max(value, 1e-300)), places, ratioTicks(places), (axis) => {
      const band = margin > 0 ? [axis.block(1 / (1 + margin), 1 + margin, 0, HEIGHT, { class: 'margin-band' })] : [];
      return [...band, axis.line(1, 0, HEIGHT, 'no-change')];
    });
  }

  /** Of amounts, from zero. */
  static ofAmounts(unit: Unit, values: Iterable<number>): CellAxis {
    const most = Math.max(0, ...values);
    const { factor, name } = scaled(unit, most);
    const scale = scaleLinear([0, most / factor || 1], [0, 100]).nice(4).clamp(true);
    const places = scale.ticks(4);
    const labels = decimal(places).map((text) => `${text} ${name}`.trim());
    const at = (value: number): number => scale(value / factor);
    return new CellAxis(at, places.map((place) => place * factor), labels, (axis) => [axis.line(0, 0, HEIGHT, 'no-change')]);
  }

  /** A cell with what is drawn in it. `said` is what it shows, for whoever does not see it; `null` where another cell says it. */
  cell(said: string | null, ...children: SVGElement[]): SVGSVGElement {
    const heard = said === null ? { 'aria-hidden': 'true' } : { role: 'img', 'aria-label': said };
    return drawing(HEIGHT, heard, ...this.ground(this), ...children);
  }

  /** An interval with its estimate. */
  interval({ estimate, low, high }: Ratio, outcome: Outcome, said: string): SVGSVGElement {
    const top = (HEIGHT - THICK) / 2;
    const span = this.block(low, high, top, THICK, { class: `span ${outcome}` });
    return this.cell(said, span, this.line(estimate, top - 4, top + THICK + 4, 'estimate-line'));
  }

  /** An amount as a bar in the colour of this variable. */
  bar(value: number, ink: string): SVGSVGElement {
    return this.cell(null, this.block(0, value, (HEIGHT - THICK) / 2, THICK, { fill: `var(${ink})` }));
  }

  /** Amounts as dots in the colour of this variable, and their median as a line. */
  dots(values: readonly number[], median: number, ink: string): SVGSVGElement {
    const dots = values.map((value) => svg('circle', { cx: `${this.at(value)}%`, cy: HEIGHT / 2, r: 3.5, class: 'dot', fill: `var(${ink})` }));
    return this.cell(null, ...dots, this.line(median, 4, HEIGHT - 4, 'estimate-line'));
  }

  /** What the axis' places mean, for the foot of the column. */
  foot(): SVGSVGElement {
    const anchor = (x: number): string => (x < 12 ? 'start' : x > 88 ? 'end' : 'middle');
    return drawing(20, {}, ...this.#ticks.map(({ x, label }) => svg('text', { x: `${x}%`, y: 14, 'text-anchor': anchor(x) }, label)));
  }

  block(from: number, to: number, y: number, height: number, attributes: Record<string, string>): SVGElement {
    const [x, end] = [this.at(from), this.at(to)];
    // What is narrower than a pixel would vanish.
    return svg('rect', { x: `${x}%`, width: `${Math.max(0.4, end - x)}%`, y, height, ...attributes });
  }

  line(at: number, y1: number, y2: number, kind: string): SVGElement {
    return svg('line', { x1: `${this.at(at)}%`, x2: `${this.at(at)}%`, y1, y2, class: kind });
  }
}

function drawing(height: number, attributes: Record<string, string>, ...children: SVGElement[]): SVGSVGElement {
  return svg('svg', { class: 'cell', width: '100%', height, focusable: 'false', ...attributes }, ...children);
}

/** All that must be on an axis of ratios: every estimate and end of an interval that is a number, no difference, and the margin. */
export function ratioDomain(ratios: Iterable<Ratio | number | null>, margin: number): [number, number] {
  const far = Math.max(1 + margin, 1.005);
  const all = [1 / far, far];
  for (const one of ratios) all.push(...(one === null ? [] : typeof one === 'number' ? [one] : [one.low, one.estimate, one.high]));
  const shown = all.filter((value) => Number.isFinite(value) && value > 0);
  const [low, high] = [Math.min(...shown), Math.max(...shown)];
  const air = (high / low) ** 0.06;
  return [low / air, high * air];
}

/** What was concluded, with its interval where one may be shown. */
export interface Judged {
  outcome: Outcome;
  word: string;
  /** What it is about. */
  label: string;
  detail: string;
  /** Metrics that are shown but not judged. */
  also: readonly string[];
  ratio: Ratio | null;
}

/** Signs by which outcomes are known without their colour: up is good and down is bad, whatever the metric. */
const SIGNS: Record<Outcome, string> = { better: '▲', worse: '▼', equivalent: '=', inconclusive: '?', invalid: '✕', no_success: '✕' };

/** A table of what was concluded, in groups with a heading each, its intervals as bars against the margin. */
export function judgedTable(groups: readonly (readonly [heading: string | null, rows: readonly Judged[]])[], margin: number, about: string): Child[] {
  const ratios = groups.flatMap(([, rows]) => rows.map(ratioOf));
  const axis = ratios.some((ratio) => ratio !== null) ? CellAxis.ofRatios(ratios, margin) : null;
  // On one scale the bars of small differences would vanish beside those of large ones.
  const axisOf = areApart(ratios, margin) ? (ratio: Ratio | null) => CellAxis.ofRatios([ratio], margin) : null;
  const heads = ['Verdict', about, 'Estimate and interval', ...(axis === null ? [] : ['Interval and margin'])];
  const bodies = groups.map(([heading, judged]) => ({ heading, rows: judged.map((one) => rowOf(one, axis, axisOf)), judged }));
  const table = element(
    'table',
    { class: 'judged', role: 'table' },
    element('thead', {}, element('tr', {}, ...heads.map((name) => element('th', { scope: 'col' }, name)))),
    ...bodies.map(({ heading, rows }) => {
      const group = element('th', { role: 'rowheader', scope: 'rowgroup', colspan: heads.length, class: 'group' }, heading);
      return element('tbody', { role: 'rowgroup' }, heading === null ? null : element('tr', { role: 'row' }, group), ...rows);
    }),
    axis === null || axisOf !== null ? null : footOf(3, axis.foot()),
  );
  const texts = bodies.flatMap(({ judged }) => judged.map(({ label, word, detail }) => `${label} ${word} ${detail}`));
  const filter = filterOf({ elements: bodies.flatMap(({ rows }) => rows), texts, called: 'verdicts', first: 16 });
  const band = margin > 0 ? ` The shaded band is the margin of ${share(margin)}: differences inside of it do not matter here.` : '';
  const scale = axisOf === null ? '' : ' Each row has a scale of its own.';
  const key = `A bar is the range of differences that the blocks do not contradict, its line the estimate; where it crosses “no change” there may be none.${band}${scale}`;
  return [filter?.host ?? null, scrolling(table, about), axis === null ? null : paragraph(key, 'note')];
}

/** How many times as far as the nearest interval the farthest reaches until each has a scale of its own. */
const APART = 10;

function areApart(ratios: readonly (Ratio | null)[], margin: number): boolean {
  const reach = ({ low, high }: Ratio): number => Math.max(Math.abs(Math.log(low)), Math.abs(Math.log(high)), Math.log1p(margin), 1e-3);
  const reaches = ratios.flatMap((ratio) => (ratio === null ? [] : [reach(ratio)])).filter(Number.isFinite);
  return Math.max(...reaches) > APART * Math.min(...reaches);
}

/** What is invalid shows no number, even where the record should have one. */
export function ratioOf({ outcome, ratio }: Pick<Judged, 'outcome' | 'ratio'>): Ratio | null {
  return outcome === 'invalid' || outcome === 'no_success' ? null : ratio;
}

function rowOf(judged: Judged, shared: CellAxis | null, axisOf: ((ratio: Ratio | null) => CellAxis) | null): HTMLElement {
  const { outcome, word, label, detail, also } = judged;
  const pill = element('span', { class: `word ${outcome}` }, element('span', { 'aria-hidden': 'true' }, SIGNS[outcome]), word);
  const ratio = ratioOf(judged);
  const axis = shared === null || axisOf === null ? shared : axisOf(ratio);
  const foot = ratio === null || axisOf === null || axis === null ? null : axis.foot();
  const bar = ratio === null || axis === null ? null : axis.interval(ratio, outcome, `${word}: ${detail}`);
  return element(
    'tr',
    { role: 'row' },
    element('td', { role: 'cell', class: 'outcome' }, pill),
    element('th', { scope: 'row', role: 'rowheader' }, label),
    element('td', { role: 'cell', class: 'estimate' }, element('strong', {}, detail), ...also.map((text) => element('small', {}, text))),
    axis === null ? null : element('td', { role: 'cell', class: 'drawn' }, bar, foot),
  );
}
