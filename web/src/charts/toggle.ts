// A button above a chart that is on or off.

import { button } from '../elements';

/** The button; `act` is told each change. */
export function toggle(text: string, act: (on: boolean) => void, on = false): HTMLElement {
  const made = button(text, () => {
    on = !on;
    made.setAttribute('aria-pressed', String(on));
    act(on);
  }, { 'aria-pressed': String(on) });
  return made;
}
