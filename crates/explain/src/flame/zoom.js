// A click on a frame of a flame graph widens it to the whole drawing; a click outside of all frames shows everything again.
for (const svg of document.querySelectorAll('svg')) {
  const letter = 6.65, margin = 10, all = svg.viewBox.baseVal.width - 2 * margin;
  const frames = [...svg.querySelectorAll('g')].map((group) => {
    const rects = [...group.querySelectorAll('rect')];
    const name = group.querySelector('title').textContent.split('\n')[0];
    const [left, top, width] = ['x', 'y', 'width'].map((what) => Number(rects[0].getAttribute(what)));
    return { group, rects, name, left: left - margin, top, width, text: group.querySelector('text') };
  });
  const draw = (frame, left, width) => {
    for (const rect of frame.rects) {
      rect.setAttribute('x', left + margin);
      rect.setAttribute('width', width);
    }
    const room = Math.floor((width - 5) / letter);
    if (!frame.text && room >= 3) {
      frame.text = frame.group.appendChild(document.createElementNS(svg.namespaceURI, 'text'));
      frame.text.setAttribute('y', frame.top + 12);
    }
    frame.text?.setAttribute('x', left + margin + 3);
    const name = room < frame.name.length ? `${frame.name.slice(0, room - 1)}…` : frame.name;
    if (frame.text) frame.text.textContent = room < 3 ? '' : name;
  };
  const show = (from, width) => {
    for (const frame of frames) {
      const [left, right] = [frame.left, frame.left + frame.width].map((x) => Math.min(all, Math.max(0, ((x - from) / width) * all)));
      frame.group.setAttribute('visibility', right - left > 0.1 ? 'visible' : 'hidden');
      if (right - left > 0.1) draw(frame, left, right - left);
    }
  };
  svg.addEventListener('click', ({ target }) => {
    const frame = frames.find(({ group }) => group.contains(target));
    if (frame) show(frame.left, frame.width);
    else show(0, all);
  });
}
