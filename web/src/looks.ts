// How variants look: colours after Okabe and Ito (2008), darkened or lightened until each stands out from its background by 3:1,
// and for everyone who sees no colours a mark and dashes. The colours themselves are in style/charts.css.

import { symbol, symbolCircle, symbolCross, symbolDiamond, symbolSquare, symbolStar, symbolTriangle, symbolWye } from 'd3-shape';
import { svg } from './elements';

/** A variant keeps its colour, mark and dashes everywhere, because all three follow from its index. */
export interface Look {
  /** Name of the colour's variable in the style sheet. */
  ink: string;
  /** Index into the marks. */
  mark: number;
  /** Lengths of dashes and gaps; none for an unbroken line. */
  dash: readonly number[];
}

const HUES = 8;
/** The first eight variants have unbroken lines; each eight after them their own pattern. */
const DASHES: readonly (readonly number[])[] = [[], [7, 3], [2, 2.5], [9, 3, 2, 3], [14, 4], [4, 2, 1, 2], [1, 3], [12, 3, 2, 3, 2, 3]];
/** Marks of the same area; the last is drawn upside down. */
const MARKS = [symbolCircle, symbolSquare, symbolTriangle, symbolDiamond, symbolCross, symbolStar, symbolWye, symbolTriangle];

/** The look of the variant with this index. From 64 on looks repeat: then names tell, not colours. */
export function look(variant: number): Look {
  const round = Math.floor(variant / HUES);
  return {
    ink: `--series-${variant % HUES}`,
    // Shifted by a place each round, so that neighbours in colour differ in mark too.
    mark: (variant + round) % MARKS.length,
    dash: DASHES[round % DASHES.length] ?? [],
  };
}

/** A variant's mark about 0, `area` in square pixels, and by how many degrees to turn it. */
export function markOf(variant: number, area: number): { d: string; turn: number } {
  const { mark } = look(variant);
  return { d: symbol(MARKS[mark], area)() ?? '', turn: mark === MARKS.length - 1 ? 180 : 0 };
}

/** A variant's line and mark for legends and tables, 26 by 12 pixels. It says nothing to screen readers: its name stands beside it. */
export function swatch(variant: number): SVGSVGElement {
  const { ink, dash } = look(variant);
  const { d, turn } = markOf(variant, 34);
  const line = svg('path', { d: 'M1,6 H25', class: 'stroke', stroke: `var(${ink})`, 'stroke-dasharray': dash.join(' ') || null });
  const mark = svg('path', { d, transform: `translate(13,6) rotate(${turn})`, class: 'mark', fill: `var(${ink})` });
  return svg('svg', { viewBox: '0 0 26 12', width: 26, height: 12, 'aria-hidden': 'true', focusable: 'false', class: 'swatch' }, line, mark);
}
