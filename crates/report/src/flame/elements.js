'use strict';

// How the page makes its elements. Text from profiles goes in as text only, never as markup.

/** An element with attributes, `text`, listeners in `on`, and children. Attributes that are `null` or `false` are left out. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'text') made.textContent = value;
    else if (name === 'on') for (const [type, act] of Object.entries(value)) made.addEventListener(type, act);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** A list to choose one from. `set(value)` shows a choice that was made elsewhere. */
function chooser(label, options, act) {
  const entries = options.map((option, index) => element('option', { value: index, text: option }));
  const select = element('select', { on: { change: () => act(select.selectedIndex) } }, ...entries);
  const host = element('label', { class: 'field' }, element('span', { text: label }), select);
  return { host, set: (index) => (select.selectedIndex = index) };
}

/** Buttons of which one is pressed. Options are values with the texts on their buttons. */
function switcher(label, options, act) {
  const buttons = new Map();
  for (const [value, text] of Object.entries(options)) {
    buttons.set(value, element('button', { type: 'button', text, on: { click: () => act(value) } }));
  }
  const group = element('div', { class: 'switch', role: 'group', 'aria-label': label }, ...buttons.values());
  const host = element('div', { class: 'field' }, element('span', { text: label, 'aria-hidden': 'true' }), group);
  const set = (value) => {
    for (const [own, button] of buttons) button.setAttribute('aria-pressed', String(own === value));
  };
  return { host, set };
}

/** The box beside the pointer, or beside the node under the keyboard's focus. */
class Hint {
  constructor(host) {
    this.host = host;
  }

  /** Shows the elements near a point of the window, inside of the window. */
  show(x, y, children) {
    this.host.replaceChildren(...children);
    this.host.hidden = false;
    const { width, height } = this.host.getBoundingClientRect();
    const left = x + 14 + width > innerWidth ? x - width - 10 : x + 14;
    const top = y + 18 + height > innerHeight ? y - height - 12 : y + 18;
    this.host.style.left = `${Math.max(4, left)}px`;
    this.host.style.top = `${Math.max(4, top)}px`;
  }

  hide() {
    this.host.hidden = true;
  }
}
