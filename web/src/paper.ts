// Paper has no folds: what is folded opens for printing and is folded again afterwards. Tables behind pictures stay away: the
// picture is on the paper.

const FOLDED = 'details:not([open]):not(.behind)';

export function unfoldForPaper(): void {
  let opened: HTMLDetailsElement[] = [];
  const unfold = (): void => {
    const found = [...document.querySelectorAll<HTMLDetailsElement>(FOLDED)];
    for (const one of found) one.open = true;
    opened.push(...found);
  };
  const foldAgain = (): void => {
    for (const one of opened) one.open = false;
    opened = [];
  };
  addEventListener('beforeprint', unfold);
  addEventListener('afterprint', foldAgain);
  // Where a browser shows what would be printed, it tells nothing else.
  matchMedia('print').addEventListener('change', ({ matches }) => (matches ? unfold() : foldAgain()));
}
