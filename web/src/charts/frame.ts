// The frame every chart stands in: it draws anew when the width or the choice of variants changes, and gives the chart its
// cursor, tip, zoom and keys. It must not know what is drawn.

import { button, element } from '../elements';
import type { View } from '../view';
import type { Box } from './axes';
import { step, type Cursor, type Readings, type Told } from './cursor';
import { freshId, line, rectangle, svg } from './drawing';
import { swatch } from './marks';
import { between, by, isWhole, moved, WHOLE, type Stretch } from './zoom';

/** What a chart is drawn on. */
export interface Canvas {
  /** Pixels. */
  width: number;
  /** The stretch of the axis below that is shown. */
  stretch: Stretch;
}

/** What was drawn. */
export interface Scene {
  height: number;
  content: SVGElement[];
  /** Where the pointer reads and drags. */
  box: Box;
  readings: Readings | null;
  /** Variants whose names stand above the chart. */
  legend?: { variant: number; name: string }[];
  /** Sentences below the chart. */
  notes?: string[];
}

export interface Chart {
  /** What it is, for whoever does not see it. */
  label: string;
  /** What it shows, in a sentence or two. */
  summary(): string;
  zooms: boolean;
  /** Buttons above it. */
  tools?: (redraw: () => void) => HTMLElement[];
  draw(canvas: Canvas): Scene;
}

const KEYS = 'Arrow keys move through the figures.';
const KEYS_ZOOM = `${KEYS} Plus and minus zoom, Shift with an arrow key moves, 0 shows all again. Dragging zooms too.`;
/** As wide as paper lets a chart be at this size of type. */
const PAPER_WIDTH = 700;
const LEAST_WIDTH = 260;
/** A pointer that moved less has clicked. */
const DRAG_LEAST = 8;

class Frame {
  readonly host = element('div', { class: 'plot' });
  readonly #svg = svg('svg', { class: 'plot-drawing', role: 'img', focusable: 'false' });
  readonly #area: HTMLElement;
  readonly #tip = element('div', { class: 'plot-tip', 'aria-hidden': 'true', hidden: true });
  readonly #live = element('div', { class: 'plot-unseen', role: 'status', 'aria-live': 'polite' });
  readonly #head = element('div', { class: 'plot-head' });
  readonly #legend = element('ul', { class: 'plot-legend' });
  readonly #notes = element('div', { class: 'plot-notes' });
  readonly #reset: HTMLButtonElement;
  readonly #chart: Chart;
  #scene: Scene | null = null;
  #stretch: Stretch = WHOLE;
  #cursor: Cursor | null = null;
  #over: SVGGElement = svg('g');
  #width = 0;
  #planned = false;
  #dragFrom: number | null = null;

  constructor(view: View, chart: Chart) {
    this.#chart = chart;
    this.#reset = button('Show all again', () => this.#zoom(WHOLE), { class: 'plot-reset', hidden: true });
    const keys = element('p', { class: 'plot-keys', id: freshId('keys') }, chart.zooms ? KEYS_ZOOM : KEYS);
    this.#area = element('div', {
      class: chart.zooms ? 'plot-area plot-zooms' : 'plot-area',
      role: 'application',
      'aria-roledescription': 'chart',
      'aria-label': chart.label,
      'aria-describedby': keys.id,
      tabindex: 0,
    });
    this.#area.append(this.#svg, this.#tip);
    const tools = chart.tools?.(() => this.redraw()) ?? [];
    this.#head.append(this.#legend, element('div', { class: 'plot-tools' }, ...tools, this.#reset));
    this.host.append(this.#head, this.#area, keys, this.#live, this.#notes);
    this.#listen();
    view.onChange(() => this.redraw());
    new ResizeObserver(() => this.#resized()).observe(this.host);
    // Paper has no button that shows all again.
    addEventListener('beforeprint', () => this.#drawAt(PAPER_WIDTH, WHOLE));
    addEventListener('afterprint', () => this.#drawAt(this.#width));
  }

  /** Soon, and once however often it was asked for. */
  redraw(): void {
    if (this.#planned) return;
    this.#planned = true;
    requestAnimationFrame(() => {
      this.#planned = false;
      this.#drawAt(this.#width);
    });
  }

  #resized(): void {
    const width = Math.floor(this.host.clientWidth);
    if (width === this.#width && this.#scene !== null) return;
    this.#width = width;
    this.#drawAt(width);
  }

  /** Nothing is drawn where it has no width, as in a fold that is closed. */
  #drawAt(width: number, stretch = this.#stretch): void {
    if (width === 0) return;
    const wide = Math.max(LEAST_WIDTH, width);
    const scene = this.#chart.draw({ width: wide, stretch });
    this.#scene = scene;
    this.#over = svg('g', { class: 'over' });
    this.#svg.setAttribute('viewBox', `0 0 ${wide} ${scene.height}`);
    this.#svg.setAttribute('width', String(wide));
    this.#svg.setAttribute('height', String(scene.height));
    this.#svg.setAttribute('aria-label', `${this.#chart.label}. ${this.#chart.summary()}`);
    this.#svg.replaceChildren(...scene.content, this.#over);
    // Where nothing is drawn there is nothing to set or to walk through.
    const nothing = scene.content.length === 0;
    this.#head.hidden = nothing;
    this.#area.hidden = nothing;
    this.#reset.hidden = isWhole(this.#stretch);
    this.#legend.replaceChildren(...legendOf(scene.legend ?? []));
    this.#notes.replaceChildren(...(scene.notes ?? []).map((note) => element('p', {}, note)));
    const { columns, lanes } = scene.readings ?? { columns: 0, lanes: 0 };
    const kept = this.#cursor !== null && this.#cursor.column < columns && this.#cursor.lane < lanes;
    this.#point(kept && document.activeElement === this.#area ? this.#cursor : null);
  }

  #zoom(stretch: Stretch): void {
    if (!this.#chart.zooms) return;
    this.#stretch = stretch;
    this.redraw();
    this.#live.textContent = isWhole(stretch) ? 'All is shown.' : 'Zoomed in.';
  }

  /** Puts the cursor at a figure; `null` takes it away. */
  #point(cursor: Cursor | null): void {
    this.#cursor = cursor;
    const readings = this.#scene?.readings ?? null;
    if (cursor === null || readings === null || this.#scene === null) {
      this.#tip.hidden = true;
      this.#over.replaceChildren();
      this.#emphasize(null);
      return;
    }
    const told = readings.tell(cursor);
    const { box } = this.#scene;
    const cross = readings.upright
      ? rectangle(0, (told.y ?? 0) - 14, this.#svg.width.baseVal.value, 28, 'row-cursor')
      : line(told.x, box.top, told.x, box.top + box.height, 'crosshair');
    const ring = told.y === null || readings.upright ? [] : [svg('circle', { cx: told.x, cy: told.y, r: 7, class: 'ring' })];
    this.#over.replaceChildren(cross, ...ring);
    this.#emphasize(readings.lanes > 1 ? cursor.lane : null);
    this.#showTip(told);
  }

  /** The lane the cursor is on stands out from the others. */
  #emphasize(lane: number | null): void {
    this.#svg.classList.toggle('one-of-many', lane !== null);
    for (const group of this.#svg.querySelectorAll<SVGElement>('[data-lane]')) {
      group.classList.toggle('chosen', group.dataset['lane'] === String(lane));
    }
  }

  #showTip(told: Told): void {
    const lines = told.lines.map(({ text, variant, strong }) =>
      element('div', { class: strong ? 'strong' : null }, variant === undefined ? null : swatch(variant), text),
    );
    this.#tip.replaceChildren(element('div', { class: 'plot-tip-title' }, told.title), ...lines);
    this.#tip.hidden = false;
    const room = this.#area.clientWidth;
    const { offsetWidth: wide, offsetHeight: high } = this.#tip;
    const right = told.x + 14;
    const left = right + wide <= room ? right : told.x - 14 - wide;
    const top = Math.max(0, (told.y ?? (this.#scene?.box.top ?? 0) + high) - high - 10);
    // By script and not as an attribute: the page's policy allows no style in markup.
    this.#tip.style.left = `${Math.max(0, Math.min(left, room - wide))}px`;
    this.#tip.style.top = `${top}px`;
  }

  #listen(): void {
    const area = this.#area;
    area.addEventListener('pointermove', (event) => this.#moved(event));
    area.addEventListener('pointerdown', (event) => this.#pressed(event));
    area.addEventListener('pointerup', (event) => this.#released(event));
    area.addEventListener('pointercancel', () => this.#letGo());
    area.addEventListener('pointerleave', () => this.#dragFrom === null && this.#point(null));
    area.addEventListener('dblclick', () => this.#zoom(WHOLE));
    area.addEventListener('keydown', (event) => this.#keyed(event));
    area.addEventListener('blur', () => this.#point(null));
  }

  /** The pointer's place in the drawing. */
  #placeOf(event: PointerEvent): { x: number; y: number } {
    const { left, top } = this.#svg.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  #moved(event: PointerEvent): void {
    const { x, y } = this.#placeOf(event);
    if (this.#dragFrom !== null && this.#scene !== null) {
      const { box } = this.#scene;
      const from = Math.min(x, this.#dragFrom);
      this.#over.replaceChildren(rectangle(from, box.top, Math.abs(x - this.#dragFrom), box.height, 'selection'));
      return;
    }
    this.#point(this.#scene?.readings?.nearest(x, y) ?? null);
  }

  #pressed(event: PointerEvent): void {
    if (!this.#chart.zooms || event.button !== 0) return;
    this.#dragFrom = this.#placeOf(event).x;
    this.#area.setPointerCapture(event.pointerId);
  }

  #released(event: PointerEvent): void {
    const { x, y } = this.#placeOf(event);
    const from = this.#dragFrom;
    this.#letGo();
    if (this.#scene === null) return;
    const { box, readings } = this.#scene;
    if (from !== null && Math.abs(x - from) >= DRAG_LEAST) {
      const share = (at: number): number => (at - box.left) / box.width;
      this.#cursor = null;
      this.#zoom(between(this.#stretch, share(from), share(x)));
      return;
    }
    this.#point(readings?.nearest(x, y) ?? null);
  }

  #letGo(): void {
    this.#dragFrom = null;
  }

  #keyed(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { key } = event;
    const done = this.#zoomKey(key, event.shiftKey) || this.#cursorKey(key);
    if (done) event.preventDefault();
  }

  #zoomKey(key: string, shift: boolean): boolean {
    if (!this.#chart.zooms) return false;
    const around = this.#cursorShare();
    if (key === '+' || key === '=') this.#zoom(by(this.#stretch, 0.5, around));
    else if (key === '-') this.#zoom(by(this.#stretch, 2, around));
    else if (key === '0') this.#zoom(WHOLE);
    else if (shift && key === 'ArrowLeft') this.#zoom(moved(this.#stretch, -0.25));
    else if (shift && key === 'ArrowRight') this.#zoom(moved(this.#stretch, 0.25));
    else return false;
    return true;
  }

  /** Where the cursor stands in the box, 0 to 1; the middle without one. */
  #cursorShare(): number {
    if (this.#cursor === null || this.#scene?.readings == null) return 0.5;
    const { x } = this.#scene.readings.tell(this.#cursor);
    return Math.min(1, Math.max(0, (x - this.#scene.box.left) / this.#scene.box.width));
  }

  #cursorKey(key: string): boolean {
    const readings = this.#scene?.readings ?? null;
    if (readings === null || readings.columns === 0) return false;
    if (key === 'Escape') {
      this.#point(null);
      return true;
    }
    const next = step(this.#cursor, key, readings);
    if (next === null) return false;
    this.#point(next);
    this.#keepInSight();
    this.#live.textContent = readings.tell(next).spoken;
    return true;
  }

  /** What is shown moves along where keys lead the cursor out of it. */
  #keepInSight(): void {
    if (isWhole(this.#stretch) || this.#scene?.readings == null || this.#cursor === null) return;
    const { box } = this.#scene;
    const share = (this.#scene.readings.tell(this.#cursor).x - box.left) / box.width;
    if (share >= 0 && share <= 1) return;
    this.#stretch = moved(this.#stretch, share < 0 ? share - 0.1 : share - 0.9);
    this.redraw();
  }
}

/** More names than these nobody looks up in a legend. */
const LEGEND_MAX = 12;

function legendOf(variants: { variant: number; name: string }[]): HTMLElement[] {
  if (variants.length < 2) return [];
  if (variants.length > LEGEND_MAX) return [element('li', {}, `${variants.length} variants: the cursor tells which is which`)];
  return variants.map(({ variant, name }) => element('li', {}, swatch(variant), name));
}

/** A chart that keeps itself up to date. */
export function framed(view: View, chart: Chart): HTMLElement {
  return new Frame(view, chart).host;
}
