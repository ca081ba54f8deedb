'use strict';

// One flame graph: a canvas that draws what of a tree is in view, the pointer and the keyboard on it, and an element for the
// node under the keyboard's focus, which is what a screen reader reads. It must not know what a colour or a figure means: `look`
// tells.

const ROW = 20;
const RULER = 22;
const GAP = 1;
const PIXELS_MIN = 0.1; // narrower nodes are not drawn
const PIXELS_TO_FOCUS = 1; // narrower ones are passed over by arrow keys
const LABEL_FROM = 26;
const OUTLINE_FROM = 8;
const ZOOM_MS = 140;
const CANVAS_PIXELS_MAX = 16_000; // of a side: more than any browser's limit is an empty canvas
const FONT = '12px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
const DIRECTIONS = { ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: 'left', ArrowRight: 'right' };

let made = 0;

class Chart {
  /**
   * `tree` with its `plan`; `span` fills the width. `look` says what a node looks like and is called; `act.zoom(node)`, `act.out()`,
   * `act.reset()`, `act.about(node)` say what to do, `act.hint(node, x, y)` and `act.hintless()` what is told beside it.
   */
  constructor({ label, tree, plan, span, look, act }) {
    Object.assign(this, { tree, plan, look, act, current: 0, zoomed: 0, hovered: -1, moving: 0 });
    this.view = viewOf(plan, 0, span);
    made += 1;
    this.canvas = element('canvas', { 'aria-hidden': 'true' });
    this.context = this.canvas.getContext('2d');
    this.items = [0, 1].map((item) => element('div', { class: 'item', role: 'treeitem', id: `item-${made}-${item}` }));
    const on = {
      pointermove: (event) => this.hover(event),
      pointerleave: () => this.unhover(),
      click: (event) => this.click(event),
      keydown: (event) => this.key(event),
      focus: () => this.told(),
      blur: () => this.act.hintless(),
    };
    const attributes = { class: 'chart', role: 'tree', tabindex: '0', 'aria-label': label, on };
    this.host = element('div', attributes, this.canvas, ...this.items);
    this.host.style.height = `${this.height()}px`;
    this.sized = new ResizeObserver(() => this.draw());
    this.sized.observe(this.host);
  }

  /** Frees what outlives the element. */
  end() {
    this.sized.disconnect();
    cancelAnimationFrame(this.moving);
  }

  height() {
    return RULER + this.plan.rows.length * ROW;
  }

  /** Sets the canvas to the part of the graph that can be in the window, or to all of it for paper, and tells its place in it. */
  fit() {
    const width = this.host.clientWidth;
    const paper = 'print' in document.documentElement.dataset;
    const height = Math.min(this.height(), paper ? CANVAS_PIXELS_MAX : Math.max(innerHeight, 200));
    const ratio = Math.min(paper ? 2 : devicePixelRatio, CANVAS_PIXELS_MAX / Math.max(width, height, 1));
    const [columns, lines] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== columns || this.canvas.height !== lines) {
      Object.assign(this.canvas, { width: columns, height: lines });
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    const top = paper ? 0 : Math.max(0, -this.host.getBoundingClientRect().top);
    return { width, height, ratio, offset: Math.min(top, this.height() - height) };
  }

  draw() {
    const { width, height, ratio, offset } = this.fit();
    if (width <= 0) return;
    const { context, view } = this;
    this.scale = width / view.span;
    this.offset = offset;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = FONT;
    context.textBaseline = 'middle';
    this.letter = context.measureText('0000000000').width / 10;
    const from = Math.floor(offset / ROW);
    const to = Math.min(this.plan.rows.length, Math.ceil((offset + height) / ROW));
    for (let depth = from; depth < to; depth += 1) this.drawRow(depth, RULER + depth * ROW - offset);
    this.drawRuler(width);
    this.place();
  }

  drawRow(depth, y) {
    const { plan, view, scale } = this;
    const row = plan.rows[depth];
    for (let index = Math.max(0, lastBefore(row, plan.x, view.left)); index < row.length; index += 1) {
      const node = row[index];
      if (plan.x[node] >= view.right) break;
      const left = (Math.max(plan.x[node], view.left) - view.left) * scale;
      const right = (Math.min(plan.x[node] + plan.total[node], view.right) - view.left) * scale;
      if (right - left >= PIXELS_MIN) this.drawNode(node, left, y, right - left);
    }
  }

  drawNode(node, left, y, width) {
    const { context, look } = this;
    const { fill, ink } = look.colour(node);
    const inner = width > 3 ? width - GAP : width;
    context.globalAlpha = look.isDim(node) ? 0.22 : this.isAbove(node) ? 0.6 : 1;
    context.fillStyle = fill;
    context.fillRect(left, y, inner, ROW - GAP);
    if (look.isGone(node)) {
      context.fillStyle = this.hatch(ink);
      context.fillRect(left, y, inner, ROW - GAP);
    }
    if (look.isNew(node) && width > OUTLINE_FROM) this.outline(left, y, inner, ink, 1);
    if (width >= LABEL_FROM) this.drawLabel(node, left, y, width);
    context.globalAlpha = 1;
    if (node === this.hovered) this.outline(left, y, inner, look.text(), 2);
  }

  /** The name, on plain ground where there are lines below it, and the edge that tells the kind. */
  drawLabel(node, left, y, width) {
    const { context, look } = this;
    const { fill, ink } = look.colour(node);
    const stripe = look.stripe(node);
    const text = this.fitted(look.label(node), width - (stripe ? 12 : 8));
    const start = left + (stripe ? 8 : 4);
    if (look.isGone(node) && text !== '') {
      context.fillStyle = fill;
      context.fillRect(left, y, start - left + context.measureText(text).width + 4, ROW - GAP);
    }
    if (stripe) {
      context.fillStyle = stripe;
      context.fillRect(left, y, 4, ROW - GAP);
    }
    context.fillStyle = ink;
    context.fillText(text, start, y + ROW / 2);
  }

  isAbove(node) {
    return this.plan.depth[node] < this.plan.depth[this.zoomed];
  }

  outline(left, y, width, colour, weight) {
    this.context.lineWidth = weight;
    this.context.strokeStyle = colour;
    this.context.strokeRect(left + weight / 2, y + weight / 2, Math.max(0, width - weight), ROW - GAP - weight);
  }

  /** Diagonal lines, so that what is gone is known without colour. */
  hatch(ink) {
    this.hatches ??= new Map();
    if (!this.hatches.has(ink)) {
      const tile = Object.assign(document.createElement('canvas'), { width: 6, height: 6 });
      const context = tile.getContext('2d');
      context.strokeStyle = ink;
      context.globalAlpha = 0.35;
      context.lineWidth = 1.2;
      for (const shift of [-6, 0, 6]) {
        context.moveTo(shift - 1, 7);
        context.lineTo(shift + 7, -1);
      }
      context.stroke();
      this.hatches.set(ink, this.context.createPattern(tile, 'repeat'));
    }
    return this.hatches.get(ink);
  }

  /** As much of a text as has room. Letters that are not of the usual width are measured. */
  fitted(text, room) {
    if (/^[\x20-\x7e−+…]*$/.test(text)) {
      const letters = Math.floor(room / this.letter);
      if (text.length <= letters) return text;
      return letters < 3 ? '' : `${text.slice(0, letters - 1)}…`;
    }
    const letters = Array.from(text);
    let [low, high] = [0, letters.length];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      const cut = letters.slice(0, middle).join('') + (middle < letters.length ? '…' : '');
      if (this.context.measureText(cut).width <= room) low = middle;
      else high = middle - 1;
    }
    if (low === letters.length) return text;
    return low < 2 ? '' : `${letters.slice(0, low).join('')}…`;
  }

  drawRuler(width) {
    const { context, look, view } = this;
    context.fillStyle = look.page();
    context.fillRect(0, 0, width, RULER);
    context.fillStyle = look.faint();
    for (const value of ticks(view.span, Math.max(2, Math.floor(width / 140)))) {
      const x = value * this.scale;
      context.fillRect(Math.min(x, width - 1), RULER - 6, 1, 5);
      const text = value === 0 ? look.unit() : mark(value);
      const place = x + 4 + text.length * this.letter > width ? x - 4 - text.length * this.letter : x + 4;
      context.fillText(text, place, RULER / 2 - 1);
    }
    if (this.plan.total[this.zoomed] <= 0) context.fillText('no time here in this variant', 4, RULER + ROW / 2);
  }

  /** Shows a node in the whole width, or in as much as `span` leaves it. */
  zoom(node, span) {
    this.zoomed = node;
    const [from, to] = [this.view, viewOf(this.plan, node, span)];
    if (this.plan.total[this.current] <= 0 || !inView(this.plan, to, this.current)) this.current = node;
    cancelAnimationFrame(this.moving);
    if (matchMedia('(prefers-reduced-motion: reduce)').matches) {
      this.view = to;
      this.draw();
      return;
    }
    const begin = performance.now();
    const step = (now) => {
      const done = Math.min(1, Math.max(0, (now - begin) / ZOOM_MS));
      const eased = 1 - (1 - done) ** 3;
      const mixed = (name) => from[name] + (to[name] - from[name]) * eased;
      this.view = done < 1 ? { left: mixed('left'), right: mixed('right'), span: mixed('span') } : to;
      this.draw();
      if (done < 1) this.moving = requestAnimationFrame(step);
    };
    this.moving = requestAnimationFrame(step);
  }

  nodeUnder(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    const y = event.clientY - top;
    if (y < RULER) return -1;
    const value = this.view.left + (event.clientX - left) / this.scale;
    if (value >= this.view.right) return -1;
    return nodeAt(this.plan, Math.floor((y - RULER + this.offset) / ROW), value);
  }

  hover(event) {
    if (event.pointerType === 'touch') return;
    const node = this.nodeUnder(event);
    this.host.classList.toggle('over', node >= 0);
    if (node >= 0) this.act.hint(node, event.clientX, event.clientY);
    else this.act.hintless();
    if (node === this.hovered) return;
    this.hovered = node;
    this.draw();
  }

  unhover() {
    this.hovered = -1;
    this.act.hintless();
    this.draw();
  }

  click(event) {
    const node = this.nodeUnder(event);
    if (node < 0) return;
    this.current = node;
    this.act.zoom(node);
    this.host.focus({ preventScroll: true });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = DIRECTIONS[event.key];
    const acts = {
      Enter: () => this.act.zoom(this.current),
      ' ': () => this.act.zoom(this.current),
      Backspace: () => this.act.out(),
      Escape: () => this.act.reset(),
      Home: () => this.moveTo(0),
      c: () => this.act.about(this.current),
    };
    const least = PIXELS_TO_FOCUS / this.scale;
    if (direction) this.moveTo(neighbour(this.tree, this.plan, this.view, this.current, direction, least));
    else if (acts[event.key]) acts[event.key]();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  moveTo(node) {
    this.current = node;
    this.items.reverse(); // another element each time, so that a screen reader notices
    this.place();
    this.items[0].scrollIntoView({ block: 'nearest' });
    this.told();
  }

  /** Puts the focused node's element over its place, with what it is. */
  place() {
    const { plan, view, scale, current: node, look } = this;
    const left = Math.max(0, (plan.x[node] - view.left) * scale);
    const right = (Math.min(plan.x[node] + plan.total[node], view.right) - view.left) * scale;
    const [item, other] = this.items;
    other.hidden = true;
    item.hidden = right <= left;
    Object.assign(item.style, { left: `${left}px`, width: `${Math.max(2, right - left)}px` });
    Object.assign(item.style, { top: `${RULER + plan.depth[node] * ROW}px`, height: `${ROW - GAP}px` });
    item.setAttribute('aria-label', look.said(node));
    item.setAttribute('aria-level', String(plan.depth[node] + 1));
    item.setAttribute('aria-selected', String(node === this.zoomed));
    this.host.setAttribute('aria-activedescendant', item.id);
  }

  /** The hint of the focused node, where the focus came by the keyboard. */
  told() {
    if (!this.host.matches(':focus-visible') || this.items[0].hidden) return;
    const { left, width, bottom } = this.items[0].getBoundingClientRect();
    this.act.hint(this.current, left + Math.min(width, 320), bottom - 12);
  }
}
