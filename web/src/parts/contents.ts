// The contents: a link to each part that is there, and which one is being read.

import { element } from '../elements';

export function contentsOf(parts: readonly HTMLElement[]): HTMLElement {
  const links = new Map(
    parts.map((part): [Element, HTMLElement] => {
      const heading = part.querySelector('h1, h2')?.textContent ?? '';
      return [part, element('a', { href: `#${part.id}` }, part.id === 'answer' ? 'Answer' : heading)];
    }),
  );
  follow(links);
  const items = [...links.values()].map((link) => element('li', {}, link));
  return element('nav', { class: 'contents', 'aria-label': 'Contents' }, element('p', { class: 'brand' }, 'Proofload'), element('ul', {}, ...items));
}

/** Marks the link of the uppermost part in sight. */
function follow(links: ReadonlyMap<Element, HTMLElement>): void {
  const seen = new Set<Element>();
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) seen.add(target);
      else seen.delete(target);
    }
    const current = [...links.keys()].find((part) => seen.has(part));
    for (const [part, link] of links) {
      if (part === current) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    }
  }, { rootMargin: '-15% 0px -60% 0px' });
  for (const part of links.keys()) watcher.observe(part);
}
