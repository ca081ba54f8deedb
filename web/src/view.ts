// Which variants the pictures show, chosen once for the whole page. Pictures ask it when they draw, and draw anew when it changes.
// It must not know what is drawn, or touch the document.

/** So many lines can be told apart in one picture; with more variants the others begin switched off. */
export const SHOWN_AT_FIRST_MAX = 8;

/** The choice of a reader. */
export class View {
  readonly #off: boolean[];
  readonly #listeners: (() => void)[] = [];
  #pair: readonly [number, number] | null = null;

  /** A view of so many variants. It begins with all, or of too many with those that are compared and the first ones. */
  constructor(variants: number, compared: Iterable<readonly [number, number]>) {
    const all = Array.from({ length: variants }, (_, variant) => variant);
    const wanted = variants <= SHOWN_AT_FIRST_MAX ? all : [...new Set([...compared].flat().concat(all))].slice(0, SHOWN_AT_FIRST_MAX);
    this.#off = all.map((variant) => !wanted.includes(variant));
  }

  /** Whether pictures leave a variant out: because it was switched off, or because two others are compared. */
  hidden(variant: number): boolean {
    return this.#pair === null ? (this.#off[variant] ?? true) : !this.#pair.includes(variant);
  }

  /** Switches variants off or on. While two are compared this ends the comparison. */
  setHidden(variants: Iterable<number>, hidden: boolean): void {
    for (const variant of variants) this.#off[variant] = hidden;
    this.setPair(null);
  }

  /** The two variants that are compared, the baseline first; `null` where all those that are switched on are shown. */
  get pair(): readonly [number, number] | null {
    return this.#pair;
  }

  /** Compares two variants, which leaves out all others, or with `null` ends that. */
  setPair(pair: readonly [number, number] | null): void {
    this.#pair = pair;
    for (const listener of this.#listeners) listener();
  }

  /** Calls a listener now and after each change. */
  follow(listener: () => void): void {
    this.#listeners.push(listener);
    listener();
  }
}
