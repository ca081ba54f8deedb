// Marks: the shape by which a variant or an outcome is known without its colour.

import {
  symbol,
  symbolCircle,
  symbolCross,
  symbolDiamond,
  symbolSquare,
  symbolStar,
  symbolTriangle,
  symbolWye,
  type SymbolType,
} from 'd3-shape';
import type { Outcome } from '../model';
import { svg } from './drawing';
import { look, MARKS } from './palette';

type Shape = (typeof MARKS)[number];

const TYPES: Record<Shape, SymbolType> = {
  circle: symbolCircle,
  square: symbolSquare,
  triangle: symbolTriangle,
  diamond: symbolDiamond,
  cross: symbolCross,
  star: symbolStar,
  wye: symbolWye,
  wedge: symbolTriangle,
};

/** A shape about a place, `area` in square pixels, turned by so many degrees. */
function shapeAt(shape: Shape, x: number, y: number, area: number, kind: string, turn = shape === 'wedge' ? 180 : 0): SVGPathElement {
  const turned = turn === 0 ? '' : ` rotate(${turn})`;
  return svg('path', { d: symbol(TYPES[shape], area)() ?? '', transform: `translate(${x.toFixed(1)},${y.toFixed(1)})${turned}`, class: kind });
}

/** A variant's mark at a place. */
export function markAt(variant: number, x: number, y: number, area = 36, kind = 'mark'): SVGPathElement {
  const { hue, mark } = look(variant);
  return shapeAt(MARKS[mark] ?? 'circle', x, y, area, `${kind} series-${hue}`);
}

/** Up is good, down is bad, whatever the metric; the rest is neither. */
const OUTCOMES: Record<Outcome, Shape> = {
  better: 'triangle',
  worse: 'wedge',
  equivalent: 'square',
  inconclusive: 'circle',
  void: 'cross',
  no_success: 'cross',
};

/** An outcome's mark at a place. */
export function outcomeAt(outcome: Outcome, x: number, y: number, area = 90): SVGPathElement {
  const shape = OUTCOMES[outcome];
  return shapeAt(shape, x, y, area, `outcome-mark outcome-${outcome}`, shape === 'cross' ? 45 : undefined);
}

/** A variant's line and mark for legends and tables, 26 by 12 pixels. It says nothing to screen readers: its name stands beside it. */
export function swatch(variant: number): SVGSVGElement {
  const { hue, dash } = look(variant);
  const stroke = svg('path', { d: 'M1,6 H25', class: `curve series-${hue}`, 'stroke-dasharray': dash || null });
  const box = { viewBox: '0 0 26 12', width: 26, height: 12, 'aria-hidden': 'true', focusable: 'false', class: 'swatch' };
  return svg('svg', box, stroke, markAt(variant, 13, 6, 34));
}
