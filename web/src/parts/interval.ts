// An interval as a bar in a row of a table. All rows share one axis, so that bars compare; the margin is a band behind them.
// Places are in per cent of the width, so that nothing has to be measured or drawn anew.

import type { Axis } from '../charts/axis';
import { svg } from '../charts/drawing';
import { marginBand, ratioAxis, ratioDomain } from '../charts/ratio-axis';
import type { Outcome, Ratio } from '../model';

const TICKS = 4;
const HEIGHT = 28;
const AXIS_HEIGHT = 20;
const THICK = 10;
/** Per cent of the width that a word takes in the narrowest column. */
const LABEL_ROOM = 27;

/** The axis of all bars. */
export class RatioScale {
  readonly #axis: Axis;
  readonly #band: [number, number] | null;

  constructor(ratios: Iterable<Ratio | null>, margin: number) {
    this.#axis = ratioAxis(ratioDomain(ratios, margin), TICKS);
    this.#band = marginBand(margin);
  }

  /** Where a ratio stands, in per cent of the width; beyond the ends at the ends. */
  #at(ratio: number): number {
    const [low, high] = this.#axis.domain.map(Math.log) as [number, number];
    return Math.min(100, Math.max(0, (100 * (Math.log(Math.max(ratio, 1e-300)) - low)) / (high - low)));
  }

  /** The bar of a row. `said` is what it shows, for whoever does not see it. */
  bar({ estimate, low, high }: Ratio, outcome: Outcome, said: string): SVGSVGElement {
    const top = (HEIGHT - THICK) / 2;
    const at = this.#at(estimate);
    return drawing(
      HEIGHT,
      { role: 'img', 'aria-label': said },
      ...this.#ground(HEIGHT),
      block(this.#at(low), this.#at(high), top, THICK, `span ${outcome}`),
      svg('line', { x1: `${at}%`, x2: `${at}%`, y1: top - 4, y2: top + THICK + 4, class: 'estimate-line' }),
    );
  }

  /** What the axis' places mean, for the foot of the column. */
  axis(): SVGSVGElement {
    const words = this.#labels().map(({ x, label }) => {
      const anchor = x < 12 ? 'start' : x > 88 ? 'end' : 'middle';
      return svg('text', { x: `${x}%`, y: 14, 'text-anchor': anchor }, label);
    });
    return drawing(AXIS_HEIGHT, { 'aria-hidden': 'true' }, ...words);
  }

  /** The words that have room beside each other; “no change” first of all. */
  #labels(): { x: number; label: string }[] {
    const all = this.#axis.ticks.filter(({ label }) => label !== '').map(({ at, label }) => ({ x: this.#at(at), label, one: at === 1 }));
    const kept: typeof all = [];
    for (const tick of [...all.filter(({ one }) => one), ...all.filter(({ one }) => !one)]) {
      if (kept.every(({ x }) => Math.abs(x - tick.x) >= LABEL_ROOM)) kept.push(tick);
    }
    return kept;
  }

  #ground(height: number): SVGElement[] {
    const band = this.#band === null ? [] : [block(this.#at(this.#band[0]), this.#at(this.#band[1]), 0, height, 'margin-band')];
    const one = `${this.#at(1)}%`;
    return [...band, svg('line', { x1: one, x2: one, y1: 0, y2: height, class: 'no-change' })];
  }
}

function drawing(height: number, attributes: Record<string, string>, ...children: SVGElement[]): SVGSVGElement {
  return svg('svg', { class: 'interval-bar', width: '100%', height, focusable: 'false', ...attributes }, ...children);
}

function block(from: number, to: number, y: number, height: number, kind: string): SVGElement {
  // An interval narrower than a pixel would vanish.
  return svg('rect', { x: `${from}%`, width: `${Math.max(0.4, to - from)}%`, y, height, class: kind });
}
