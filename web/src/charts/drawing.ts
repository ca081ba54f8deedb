// How charts make their SVG elements. Text goes in as text alone, and nothing here takes markup or a style attribute, so that
// the page's policy forbids both.

const SVG = 'http://www.w3.org/2000/svg';

export type Attributes = Record<string, string | number | null>;

/** An SVG element with attributes, of which those that are `null` are left out, and children. */
export function svg<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): SVGElementTagNameMap[Tag] {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) made.setAttribute(name, typeof value === 'number' ? shortened(value) : value);
  }
  made.append(...children);
  return made;
}

/** A hundredth of a pixel is more than any screen shows. */
function shortened(value: number): string {
  return String(Math.round(value * 100) / 100);
}

/** Words at a place; `anchor` says which end of them stands there. */
export function words(
  text: string,
  x: number,
  y: number,
  kind: string,
  anchor: 'start' | 'middle' | 'end' = 'start',
): SVGTextElement {
  return svg('text', { x, y, class: kind, 'text-anchor': anchor }, text);
}

export function line(x1: number, y1: number, x2: number, y2: number, kind: string): SVGLineElement {
  return svg('line', { x1, y1, x2, y2, class: kind });
}

export function rectangle(x: number, y: number, width: number, height: number, kind: string): SVGRectElement {
  return svg('rect', { x, y, width: Math.max(0, width), height: Math.max(0, height), class: kind });
}

let made = 0;

/** A name that nothing else in the page has, for what one element refers another to. */
export function freshId(what: string): string {
  made += 1;
  return `plot-${what}-${made}`;
}

/** Slanted lines in the colour of the class, for what must differ without colour. */
export function hatching(kind: string): { id: string; definition: SVGElement } {
  const id = freshId('hatching');
  const lines = svg('path', { d: 'M-1,1 L1,-1 M0,6 L6,0 M5,7 L7,5', class: `hatch ${kind}` });
  const pattern = svg('pattern', { id, width: 6, height: 6, patternUnits: 'userSpaceOnUse' }, lines);
  return { id, definition: pattern };
}
