// Charts of lines. uPlot draws them, with their axes, the cursor and the zoom by dragging; here are the keys, the tip that tells the
// figures at the cursor, and that charts follow the choice of variants, the window's width, its colours, and paper. It must not
// know what the figures are.

import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { colour, drawnAxis, nameOf, rangeOf, roomFor, seriesOf, shade, tinted } from './drawing';
import { button, element, onPaper } from './elements';
import { look, swatch } from './looks';
import type { Unit } from './model';
import type { View } from './view';

export interface Axis {
  name: string;
  /** Figures are in this unit; without one they stand there as they are. */
  unit?: Unit;
  log?: boolean;
  /** Begins at zero, whatever the figures. */
  zero?: boolean;
  /** What it shows, where that does not follow from the lines. */
  domain?: [number, number];
  /** Where its ticks are, about so many of them. */
  ticks?: (low: number, high: number, about: number) => number[];
  /** What stands at the ticks. */
  labels?: (places: readonly number[]) => string[];
}

export interface Line {
  variant: number;
  name: string;
  /** The height at each column; a line breaks at `null`, and goes on over `undefined`. */
  heights: readonly (number | null | undefined)[];
  /** The figure at a column, in words too; a line without this belongs to the one before it. */
  tell?: (column: number) => Figure;
  /** How it is drawn, where not as an unbroken line; `area` reaches down to zero, an `edge` is that of a band. */
  kind?: 'dotted' | 'marks' | 'area' | 'edge';
  /** Columns that have a mark; without it all, as far as there is room. */
  marked?: readonly number[];
}

export interface Figure {
  value: number | null;
  text: string;
}

/** A stretch of an axis that is shaded, from end to end of the other; a line where it has no length. */
export interface Shade {
  axis: 'x' | 'y';
  from: number;
  to: number;
  /** Name of the colour's variable. */
  ink: string;
  /** From 0, which cannot be seen, to 1. */
  strength?: number;
}

export interface Panel {
  axis: Axis;
  height: number;
  lines: readonly Line[];
  shades?: readonly Shade[];
  /** Pairs of lines, the upper first, between which is shaded. */
  bands?: readonly (readonly [upper: number, lower: number])[];
}

export interface Chart {
  /** What it is, for whoever does not see it. */
  label: string;
  /** What it shows, in a sentence or two. */
  summary: () => string;
  axis: Axis;
  /** Places of the columns along the axis below; they rise. */
  columns: readonly number[];
  /** How far the axis goes on beyond the first and the last. */
  air?: number;
  /** Below each other; they share the axis below. */
  panels: readonly Panel[];
  /** What stands above the figures at a column. */
  title: (column: number) => string;
  /** Columns whose figures a table has; all without it. */
  told?: readonly number[];
  zooms?: boolean;
  notes?: readonly string[];
}

/** A button that is on or off. */
export interface Toggle {
  text: string;
  on: boolean;
}

const KEYS = 'Arrow keys move through the figures.';
const KEYS_ZOOM = `${KEYS} Plus and minus zoom, Shift with an arrow key moves, 0 shows all again. Dragging zooms too.`;
const NOTHING = 'Nothing to show: none of the variants that are switched on has figures here.';
/** As wide as paper lets a chart be at this size of type. */
const PAPER_WIDTH = 700;
/** With more lines than these they are thin and have no marks: the cursor tells which is which. */
const LINES_PLAIN = 12;
/** Lines that fit in a tip. */
const TIP_MAX = 9;
/** Nobody reads a thousandth of an axis. */
const LEAST_SHARE = 0.001;

let frames = 0;

/** A chart that keeps itself up to date. With a `view` it leaves out variants that are hidden; `toggle` is a button that changes it. */
export class Frame {
  readonly host = element('div', { class: 'plot' });
  readonly #key = `plot-${(frames += 1)}`;
  readonly #legend = element('ul', { class: 'plot-legend' });
  readonly #area = element('div', { class: 'plot-area', role: 'application', 'aria-roledescription': 'chart', tabindex: 0 });
  readonly #below = element('p', { class: 'axis-name below' });
  readonly #tip = element('div', { class: 'plot-tip', 'aria-hidden': 'true', hidden: true });
  readonly #live = element('div', { class: 'spoken', role: 'status', 'aria-live': 'polite' });
  readonly #note = element('p', { class: 'note', hidden: true }, NOTHING);
  readonly #reset = button('Show all again', () => this.#zoom(-Infinity, Infinity), { hidden: true });
  #chart: Chart;
  #plots: uPlot[] = [];
  #width = 0;
  #plain = false;
  /** The column that the cursor is on. */
  #column: number | null = null;
  /** Index of the line the cursor is on, in the first panel. */
  #lane = 0;

  constructor(readonly view: View | null, make: (on: boolean) => Chart, toggle: Toggle | undefined) {
    let on = toggle?.on ?? false;
    this.#chart = make(on);
    const change = button(toggle?.text ?? '', () => {
      on = !on;
      change.setAttribute('aria-pressed', String(on));
      this.#chart = make(on);
      this.#build();
    }, { 'aria-pressed': String(on) });
    this.#area.setAttribute('aria-describedby', this.#key);
    const keys = element('p', { class: 'plot-keys', id: this.#key }, this.#chart.zooms ? KEYS_ZOOM : KEYS);
    const tools = element('div', { class: 'plot-tools' }, toggle ? change : null, this.#reset);
    const notes = (this.#chart.notes ?? []).map((note) => element('p', { class: 'note' }, note));
    this.host.append(element('div', { class: 'plot-head' }, this.#legend, tools), this.#area, keys, this.#live, this.#note, ...notes);
    this.#area.addEventListener('keydown', (event) => this.#keyed(event));
    this.#area.addEventListener('blur', () => this.#point(null));
    view?.follow(() => (this.#isPlain() === this.#plain ? this.#showLines() : this.#build()));
    new ResizeObserver(() => this.#resize(this.host.clientWidth)).observe(this.host);
    onPaper((paper) => {
      this.#zoom(-Infinity, Infinity);
      this.#resize(paper ? PAPER_WIDTH : this.host.clientWidth);
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#plots.forEach((plot) => plot.redraw()));
  }

  /** Nothing is drawn where it has no width, as in a fold that is closed. */
  #resize(width: number): void {
    if (width === 0) return;
    this.#width = width;
    if (this.#plots.length === 0) this.#build();
    else this.#plots.forEach((plot) => plot.setSize({ width, height: plot.height }));
  }

  #isPlain(): boolean {
    return this.#told().length > LINES_PLAIN;
  }

  #build(): void {
    if (this.#width === 0) return;
    this.#plain = this.#isPlain();
    this.#plots.forEach((plot) => plot.destroy());
    this.#area.replaceChildren(this.#tip);
    this.#plots = this.#chart.panels.map((panel, index) => {
      const name = element('p', { class: 'axis-name' });
      this.#area.append(name);
      const heights = panel.lines.map((line) => [...line.heights]);
      return new uPlot(this.#options(panel, index, name), [[...this.#chart.columns], ...heights], this.#area);
    });
    this.#area.append(this.#below);
    for (const canvas of this.#area.querySelectorAll('canvas')) canvas.setAttribute('role', 'img');
    this.#showLines();
  }

  #options({ axis, height, lines, shades = [], bands = [] }: Panel, index: number, name: HTMLElement): uPlot.Options {
    const { panels, zooms = false } = this.#chart;
    const many = lines.filter(({ tell }) => tell).length;
    const last = index === panels.length - 1;
    const left = panels.length > 1 ? () => 64 : roomFor;
    return {
      width: this.#width,
      height,
      padding: [6, 14, last ? 0 : 8, 0],
      legend: { show: false },
      scales: {
        x: { time: false, distr: this.#chart.axis.log ? 3 : 1, range: (_, low, high) => this.#shown(low, high) },
        y: { distr: axis.log ? 3 : 1, range: (_, low, high) => rangeOf(axis, low, high) },
      },
      axes: [
        { ...drawnAxis(this.#chart.axis), ...(last ? { size: 26 } : { size: 0, values: () => [] }) },
        { ...drawnAxis(axis), size: left, space: height > 100 ? 36 : 26 },
      ],
      series: [{}, ...lines.map((line) => seriesOf(line, this.#plain))],
      bands: bands.map(([upper, lower], band) => ({
        series: [upper + 1, lower + 1],
        fill: () => tinted(look(lines[lower]?.variant ?? 0).ink, band === 0 ? 0.18 : 0.38),
      })),
      focus: { alpha: 0.22 },
      cursor: {
        y: false,
        drag: { x: zooms, y: false, dist: 8, setScale: zooms },
        focus: { prox: many > 1 && panels.length === 1 ? 1e6 : -1 },
        points: { one: this.#plain, size: 9, width: 1.5, fill: () => colour('--page'), stroke: () => colour('--text') },
        sync: { key: this.#key, scales: ['x', null], setSeries: false },
      },
      hooks: {
        drawClear: [(plot) => shades.filter(({ from, to }) => from !== to).forEach((one) => shade(plot, one))],
        drawAxes: [(plot) => shades.filter(({ from, to }) => from === to).forEach((one) => shade(plot, one))],
        draw: [
          (plot) => {
            name.textContent = nameOf(axis, plot.scales['y']);
            this.#below.textContent = nameOf(this.#chart.axis, plot.scales['x']);
          },
        ],
        setCursor: [(plot) => index === 0 && this.#tell(plot.cursor.idx ?? null)],
        setSeries: [(_, series) => index === 0 && (this.#lane = ownerOf(lines, (series ?? 1) - 1))],
        setScale: [(plot, key) => key === 'x' && index === 0 && this.#zoomed(plot)],
      },
    };
  }

  /** All of the axis below, or the stretch of it that is asked for. */
  #whole(): [number, number] {
    const { axis, columns, air = 0 } = this.#chart;
    const [low = 0, high = 1] = [columns[0], columns.at(-1)];
    return axis.domain ?? (axis.log ? rangeOf(axis, low, high) : [low - air, Math.max(high + air, low + air + 1e-9)]);
  }

  #shown(low: number | null, high: number | null): [number, number] {
    const [first, last] = this.#whole();
    const { columns } = this.#chart;
    // What uPlot takes for all are the columns alone.
    const all = low === null || high === null || (low <= (columns[0] ?? low) && high >= (columns.at(-1) ?? high));
    return all ? [first, last] : [Math.max(first, low), Math.min(last, high)];
  }

  #zoom(low: number, high: number): void {
    const [first, last] = this.#whole();
    const [min, max] = [Math.max(first, low), Math.min(last, high)];
    if (max - min < (last - first) * LEAST_SHARE) return;
    // In a batch, so that places are right at once.
    this.#plots.forEach((plot) => plot.batch(() => plot.setScale('x', { min, max })));
  }

  #zoomed(plot: uPlot): void {
    const [first, last] = this.#whole();
    const { min = first, max = last } = plot.scales['x'] ?? {};
    const whole = min <= first && max >= last;
    if (this.#reset.hidden !== whole) this.#live.textContent = whole ? 'All is shown.' : 'Zoomed in.';
    this.#reset.hidden = whole;
  }

  #showLines(): void {
    const hidden = ({ variant }: Line): boolean => this.view?.hidden(variant) ?? false;
    const lines = this.#told();
    this.#plots.forEach((plot, index) => {
      plot.batch(() => this.#chart.panels[index]?.lines.forEach((line, at) => plot.setSeries(at + 1, { show: !hidden(line) })));
    });
    this.#area.hidden = lines.length === 0;
    this.#note.hidden = lines.length > 0;
    const label = `${this.#chart.label}. ${this.#chart.summary()}`;
    this.#area.setAttribute('aria-label', this.#chart.label);
    this.#area.dataset['lines'] = String(lines.length);
    for (const canvas of this.#area.querySelectorAll('canvas')) canvas.setAttribute('aria-label', label);
    const named = lines.length > LINES_PLAIN || this.#chart.panels.length > 1 || lines.length < 2 ? [] : lines;
    this.#legend.replaceChildren(...named.map(({ variant, name }) => element('li', {}, swatch(variant), name)));
  }

  /** Lines with figures that are shown. */
  #told(): Line[] {
    return this.#chart.panels.flatMap(({ lines }) => lines).filter(({ tell, variant }) => tell && !this.view?.hidden(variant));
  }

  /** Puts the cursor on a column; `null` takes it away. */
  #point(column: number | null): void {
    const own = this.#chart.panels[0]?.lines[this.#lane];
    for (const plot of this.#plots) {
      const height = column === null ? null : own?.heights[column];
      const left = column === null ? -10 : plot.valToPos(this.#chart.columns[column] ?? 0, 'x');
      plot.setCursor({ left, top: column === null ? -10 : height == null ? 0 : plot.valToPos(height, 'y') });
    }
  }

  /** What the tip says of all lines at a column: the largest first, the cursor's own strong, and of many those around it. */
  #tell(column: number | null): void {
    this.#column = column;
    this.#tip.hidden = column === null;
    const plot = this.#plots[0];
    if (column === null || plot === undefined) return;
    const single = this.#chart.panels.length === 1;
    const own = this.#chart.panels[0]?.lines[this.#lane];
    const figures = this.#told().flatMap((line) => (line.tell ? [{ line, ...line.tell(column) }] : [])).filter(({ value }) => value !== null);
    if (single) figures.sort((one, other) => (other.value ?? 0) - (one.value ?? 0));
    const at = Math.max(0, figures.findIndex(({ line }) => line === own));
    const begin = single ? Math.max(0, Math.min(at - Math.floor(TIP_MAX / 2), figures.length - TIP_MAX)) : 0;
    const kept = figures.slice(begin, begin + TIP_MAX);
    const more = figures.length - kept.length;
    const marked = single && figures.length > 1;
    this.#tip.replaceChildren(
      element('div', { class: 'faint' }, this.#chart.title(column)),
      ...kept.map(({ line, text }) => {
        const kind = marked && line === own ? 'strong' : null;
        return element('div', { class: kind }, single ? swatch(line.variant) : null, `${line.name}: ${text}`);
      }),
      more > 0 ? `and ${more} more` : figures.length === 0 ? 'nothing here' : '',
    );
    const over = plot.over.offsetLeft + (plot.cursor.left ?? 0);
    const left = over + 14 + this.#tip.offsetWidth <= this.#width ? over + 14 : over - 14 - this.#tip.offsetWidth;
    // By script and not as an attribute: the page's policy allows no style in markup.
    this.#tip.style.left = `${Math.max(0, left)}px`;
  }

  #keyed(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if ((this.#chart.zooms && this.#zoomKey(event)) || this.#cursorKey(event.key)) event.preventDefault();
  }

  #zoomKey({ key, shiftKey }: KeyboardEvent): boolean {
    const plot = this.#plots[0];
    if (plot === undefined) return false;
    const position = plot.cursor.left ?? -1;
    const width = plot.over.clientWidth;
    const around = position < 0 ? 0.5 : position / width;
    // By places in the drawing, so that a log axis needs nothing of its own.
    const zoom = (from: number, to: number): void => this.#zoom(plot.posToVal(from * width, 'x'), plot.posToVal(to * width, 'x'));
    if (key === '+' || key === '=') zoom(around / 2, around / 2 + 0.5);
    else if (key === '-') zoom(-around, 2 - around);
    else if (key === '0') this.#zoom(-Infinity, Infinity);
    else if (shiftKey && key === 'ArrowLeft') zoom(-0.25, 0.75);
    else if (shiftKey && key === 'ArrowRight') zoom(0.25, 1.25);
    else return false;
    return true;
  }

  #cursorKey(key: string): boolean {
    const plot = this.#plots[0];
    const { columns, panels } = this.#chart;
    if (plot === undefined || columns.length === 0) return false;
    if (key === 'Escape') return this.#point(null), true;
    const across = { ArrowUp: -1, ArrowDown: 1 }[key];
    const along = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[key];
    if (across === undefined && along === undefined) return false;
    const lines = panels[0]?.lines ?? [];
    const lanes = lines.flatMap((line, index) => (line.tell && !this.view?.hidden(line.variant) ? [index] : []));
    if (across !== undefined) this.#lane = lanes.at((lanes.indexOf(this.#lane) + across) % lanes.length) ?? 0;
    else if (!lanes.includes(this.#lane)) this.#lane = lanes[0] ?? 0;
    const column = this.#next(plot, this.#column, along ?? 0);
    // What is shown moves along where keys lead the cursor out of it.
    const [place, width] = [plot.valToPos(columns[column] ?? 0, 'x'), plot.over.clientWidth];
    if (place < -1 || place > width + 1) this.#zoom(plot.posToVal(place - width / 2, 'x'), plot.posToVal(place + width / 2, 'x'));
    const lane = this.#lane;
    this.#point(column);
    this.#lane = lane;
    this.#tell(column);
    const spoken = panels.length > 1 ? this.#told() : lines.slice(lane, lane + 1);
    const words = spoken.map(({ name, tell }) => `${name}: ${tell?.(column).text ?? 'nothing'}`);
    this.#live.textContent = [this.#chart.title(column), ...words].join(', ');
    return true;
  }

  /** The column so many steps on. A step is one column, or where they lie closer together than can be seen, some. */
  #next(plot: uPlot, from: number | null, steps: number): number {
    const { columns, told = [...columns.keys()] } = this.#chart;
    const last = told.length - 1;
    const at = (stop: number): number => plot.valToPos(columns[told[stop] ?? 0] ?? 0, 'x');
    let stop = from === null ? 0 : told.findLastIndex((column) => column <= from);
    for (let step = from === null && steps < Infinity ? 0 : Math.min(Math.abs(steps), last); step > 0; step -= 1) {
      const begin = at(stop);
      do stop += Math.sign(steps);
      while (stop > 0 && stop < last && Math.abs(at(stop) - begin) < 4);
    }
    return told[Math.min(last, Math.max(0, stop))] ?? 0;
  }
}

/** The line with figures that a line belongs to. */
function ownerOf(lines: readonly Line[], index: number): number {
  return Math.max(0, lines.findLastIndex(({ tell }, at) => at <= index && tell));
}
