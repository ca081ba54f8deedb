// How variants and outcomes look: colours after Okabe and Ito (2008), darkened or lightened until each stands out from its
// background by 3:1, and for everyone who sees no colours a mark and a dash pattern. Must not touch the page.

/** A variant keeps its colour, mark and dashes everywhere, because all three follow from its index. */
export interface Look {
  /** Index into the colours; the class `series-N` sets it. */
  hue: number;
  /** Index into the marks. */
  mark: number;
  /** `stroke-dasharray`; empty for an unbroken line. */
  dash: string;
}

/** Colours of variants on white and on the dark background; charts.css says the same. */
export const HUES: readonly { name: string; light: string; dark: string }[] = [
  { name: 'blue', light: '#0072b2', dark: '#4aa8e0' },
  { name: 'vermilion', light: '#d55e00', dark: '#f07a2b' },
  { name: 'green', light: '#008a64', dark: '#1fbf92' },
  { name: 'purple', light: '#b3568d', dark: '#dd93bd' },
  { name: 'black', light: '#33383d', dark: '#e8eaed' },
  { name: 'orange', light: '#a87400', dark: '#e69f00' },
  { name: 'sky', light: '#2b8cc4', dark: '#8fd0f5' },
  { name: 'olive', light: '#857a00', dark: '#f0e442' },
];

/** The backgrounds that the colours are made for. */
export const BACKGROUNDS = { light: '#ffffff', dark: '#16191d' } as const;

/** The first eight variants have unbroken lines; each eight after them their own pattern. */
const DASHES: readonly string[] = ['', '7 3', '2 2.5', '9 3 2 3', '14 4', '4 2 1 2', '1 3', '12 3 2 3 2 3'];

/** Marks have the same area; `draw` is in marks.ts. */
export const MARKS = ['circle', 'square', 'triangle', 'diamond', 'cross', 'star', 'wye', 'wedge'] as const;

/** The look of the variant with this index. From 64 on looks repeat: then names tell, not colours. */
export function look(variant: number): Look {
  const round = Math.floor(variant / HUES.length);
  return {
    hue: variant % HUES.length,
    // Shifted by a place each round, so that neighbours in colour differ in mark too.
    mark: (variant + round) % MARKS.length,
    dash: DASHES[round % DASHES.length] ?? '',
  };
}

/** Relative luminance after WCAG 2.2. */
function luminance(colour: string): number {
  const part = (at: number): number => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

/** Contrast of two colours such as `#0072b2`, from 1 to 21. */
export function contrast(one: string, other: string): number {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (high + 0.05) / (low + 0.05);
}
