// What of the variants is to be seen, chosen once for the whole page. Pictures ask it when they draw, and draw anew when it
// changes. It must not know what is drawn, or touch the document.

/** Which variants the pictures show. */
export interface View {
  /** Whether pictures leave a variant out: because it was switched off, or because two others are compared. */
  hidden(variant: number): boolean;
  /** Switches a variant off or on. While two are compared this ends the comparison. */
  setHidden(variant: number, hidden: boolean): void;
  /** The two variants that are compared, the baseline first; `null` where all those that are switched on are shown. */
  readonly pair: readonly [number, number] | null;
  /** Compares two variants, which leaves out all others, or with `null` ends that. */
  setPair(pair: readonly [number, number] | null): void;
  /** Calls a listener after each change. */
  onChange(listener: () => void): void;
}

/** So many lines can be told apart in one picture; with more variants the others begin switched off. */
export const SHOWN_AT_FIRST_MAX = 8;

/** A view of so many variants in which `shown` begin switched on. */
export class Choice implements View {
  readonly #off: boolean[];
  readonly #listeners: (() => void)[] = [];
  #pair: readonly [number, number] | null = null;

  constructor(variants: number, shown: ReadonlySet<number>) {
    this.#off = Array.from({ length: variants }, (_, variant) => !shown.has(variant));
  }

  hidden(variant: number): boolean {
    return this.#pair === null ? (this.#off[variant] ?? true) : !this.#pair.includes(variant);
  }

  setHidden(variant: number, hidden: boolean): void {
    this.#pair = null;
    this.#off[variant] = hidden;
    this.#tell();
  }

  /** Switches several on or off at once, so that pictures draw once. */
  setAll(variants: Iterable<number>, hidden: boolean): void {
    this.#pair = null;
    for (const variant of variants) this.#off[variant] = hidden;
    this.#tell();
  }

  get pair(): readonly [number, number] | null {
    return this.#pair;
  }

  setPair(pair: readonly [number, number] | null): void {
    this.#pair = pair;
    this.#tell();
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** The variants to begin with: all, or of too many those that verdicts are about, and the first ones. */
export function shownAtFirst(variants: number, compared: Iterable<readonly [number, number]>): Set<number> {
  const all = Array.from({ length: variants }, (_, variant) => variant);
  if (variants <= SHOWN_AT_FIRST_MAX) return new Set(all);
  const wanted = [...[...compared].flat(), ...all];
  return new Set([...new Set(wanted)].slice(0, SHOWN_AT_FIRST_MAX));
}
