// The timeline with its controls: buttons, keys, pointer and touch, and a line that says what is looked at.
import { element, fixed } from './dom.js';
import { decode } from './columns.js';
import { TimelineView } from './timeline.js';
import { kClasses, kClassColours, looksOf } from './timeline_rows.js';

const kKeys = 'Keys on the timeline: ← → pan, + − zoom, 0 all, ↑ ↓ choose a row, Enter opens or closes it, [ ] the step of the '
  + 'critical path before or after, f flags, Home and End. Pointer: drag to pan, Ctrl and wheel or pinch to zoom, click to choose.';

export function timelinePanel(data) {
  const timeline = decode(data);
  const canvas = element('canvas', { tabindex: '0', role: 'application', 'aria-label': 'Timeline of the run', 'aria-describedby': 'timeline-keys' });
  const spacer = element('div', { class: 'spacer' });
  const holder = element('div', { class: 'timeline-holder' }, spacer);
  spacer.append(canvas);
  const detail = element('p', { class: 'detail', 'aria-live': 'polite' }, 'Nothing chosen.');
  const tip = element('div', { class: 'tip', hidden: true });
  let view = null;
  const say = (interval) => { detail.textContent = interval < 0 ? 'Nothing chosen.' : describe(timeline, interval, true); };
  view = new TimelineView(timeline, canvas, holder, say);
  const button = (text, label, act) => element('button', { type: 'button', 'aria-label': label, title: label, onclick: () => { act(); canvas.focus({ preventScroll: true }); } }, text);
  const check = (text, name) => element('label', {}, element('input', { type: 'checkbox', checked: true, onchange: (event) => {
    view.show[name] = event.target.checked;
    view.paint();
  } }), ` ${text}`);
  const bar = element('div', { class: 'bar' },
    button('+', 'Zoom in', () => view.zoom(0.5)), button('−', 'Zoom out', () => view.zoom(2)),
    button('All', 'Show the whole run', () => view.fit()),
    button('◂', 'Step of the critical path before', () => view.step(-1)), button('▸', 'Step of the critical path after', () => view.step(1)),
    check('flags', 'flags'), check('critical path', 'path'), findBox(timeline, view));
  listen(canvas, holder, view, tip, timeline);
  new ResizeObserver(() => view.paint()).observe(holder);
  const left = timeline.ranks_shown < timeline.ranks
    ? element('p', { class: 'note' }, `Of ${timeline.ranks} GPUs the first ${timeline.ranks_shown} are shown, ${timeline.operations_shown.toLocaleString('en')} of ${timeline.operations.toLocaleString('en')} operations.`) : null;
  return { view, timeline, node: element('div', { class: 'timeline' }, bar, element('div', { class: 'frame' }, holder, tip), legend(timeline), detail, left,
    element('p', { class: 'note', id: 'timeline-keys' }, kKeys)) };
}

function legend(timeline) {
  const used = new Set(timeline.intervals.kind);
  const looks = looksOf(timeline.kinds);
  const swatch = (fill) => element('span', { class: 'swatch', style: `background:${fill}` });
  return element('ul', { class: 'legend' },
    timeline.kinds.map((kind, index) => (used.has(index) ? element('li', {}, swatch(looks[index].colour), kind.replace('_', ' ')) : null)),
    element('li', {}, 'folded rows: ', kClasses.map((name, index) => [swatch(kClassColours[index]), `${name} `])),
    element('li', {}, 'underlined: on the critical path'));
}

function describe(timeline, interval, whole) {
  const { begin, end, kind, name, track, workgroup } = timeline.intervals;
  const us = timeline.tick_ns / 1000;
  const place = timeline.tracks[track[interval]];
  let text = `${timeline.names[name[interval]]}: ${fixed((end[interval] - begin[interval]) * us, 3)} us`;
  text += `, from ${fixed(begin[interval] * us, 3)} to ${fixed(end[interval] * us, 3)} us, GPU ${place.gpu}, ${place.name}`;
  if (workgroup[interval] !== 0xffffffff) text += `, workgroup ${workgroup[interval]}`;
  if (!whole) return text;
  text += `, ${timeline.kinds[kind[interval]].replace('_', ' ')}`;
  const step = timeline.path.interval.indexOf(interval);
  if (step >= 0) text += `; on the critical path from ${fixed(timeline.path.begin[step] * us, 3)} to ${fixed(timeline.path.end[step] * us, 3)} us`;
  const released = timeline.flags.wait.indexOf(interval);
  if (released >= 0) {
    const signal = timeline.flags.signal[released];
    text += `; released by ${timeline.names[name[signal]]} of GPU ${timeline.tracks[track[signal]].gpu}`;
  }
  return `${text}.`;
}

// Chooses the next interval whose name has the text, in the order of time of each track.
function findBox(timeline, view) {
  const input = element('input', { type: 'search', placeholder: 'find, then Enter', 'aria-label': 'Find operations by name', size: '14' });
  let last = -1;
  let text = '';
  input.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || input.value === '') return;
    if (input.value !== text) last = -1;
    text = input.value;
    const names = timeline.names.map((name) => name.includes(text));
    const { name } = timeline.intervals;
    for (let n = 1; n <= name.length; ++n) {
      const i = (last + n + name.length) % name.length;
      if (!names[name[i]]) continue;
      last = i;
      view.select(i);
      return;
    }
    input.setCustomValidity('no operation has this in its name');
    input.reportValidity();
    input.setCustomValidity('');
  });
  return input;
}

function listen(canvas, holder, view, tip, timeline) {
  const pointers = new Map();
  let moved = 0;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  holder.addEventListener('scroll', () => view.paint());
  canvas.addEventListener('wheel', (event) => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      view.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.01), view.time(place(event)[0]));
    } else if (event.deltaX !== 0 || event.shiftKey) {
      event.preventDefault();
      view.pan((event.deltaX || event.deltaY) / view.width);
    }
  }, { passive: false });
  canvas.addEventListener('pointerdown', (event) => {
    pointers.set(event.pointerId, place(event));
    moved = 0;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    const [x, y] = place(event);
    if (!pointers.has(event.pointerId)) {
      hover(event, x, y);
      return;
    }
    const [px, py] = pointers.get(event.pointerId);
    const others = [...pointers].filter(([id]) => id !== event.pointerId);
    if (others.length > 0) {
      const [ox] = others[0][1];
      const before = Math.abs(px - ox);
      const now = Math.abs(x - ox);
      if (before > 8 && now > 8) view.zoom(before / now, view.time(ox));
    } else {
      view.pan((px - x) / (view.width - view.gutter));
      if (event.pointerType === 'mouse') holder.scrollTop += py - y;
    }
    moved += Math.abs(x - px) + Math.abs(y - py);
    pointers.set(event.pointerId, [x, y]);
    tip.hidden = true;
  });
  const up = (event) => {
    if (pointers.delete(event.pointerId) && moved < 4 && event.type === 'pointerup') choose(...place(event));
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('pointerleave', () => {
    tip.hidden = true;
    view.hovered = -1;
    view.paint();
  });
  canvas.addEventListener('focus', () => view.paint());
  canvas.addEventListener('blur', () => view.paint());
  canvas.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !press(view, holder, event.key)) return;
    event.preventDefault();
  });

  function hover(event, x, y) {
    const { interval, row } = view.pick(x, y);
    canvas.style.cursor = x < view.gutter && row && row.opens ? 'pointer' : 'default';
    if (interval !== view.hovered) {
      view.hovered = interval;
      view.paint();
    }
    tip.hidden = interval < 0;
    if (interval < 0) return;
    tip.textContent = describe(timeline, interval, false);
    tip.style.left = `${Math.max(0, Math.min(x + 14, view.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${y + 16 + tip.offsetHeight > view.height ? y - tip.offsetHeight - 8 : y + 16}px`;
  }

  function choose(x, y) {
    const { interval, row } = view.pick(x, y);
    if (row) view.cursor = view.rows.indexOf(row);
    if (row && (x < view.gutter || row.kind !== 'track')) view.toggle(row);
    else view.select(interval, false);
  }
}

// Whether the key meant something.
function press(view, holder, key) {
  const row = view.rows[view.cursor];
  switch (key) {
    case 'ArrowLeft': view.pan(-0.1); return true;
    case 'ArrowRight': view.pan(0.1); return true;
    case '+': case '=': view.zoom(0.6); return true;
    case '-': case '_': view.zoom(1 / 0.6); return true;
    case '0': view.fit(); return true;
    case 'Home': view.look(0, view.to - view.from); return true;
    case 'End': view.look(view.timeline.end, view.to - view.from); return true;
    case '[': view.step(-1); return true;
    case ']': view.step(1); return true;
    case 'f': view.show.flags = !view.show.flags; view.paint(); return true;
    case 'Enter': case ' ': view.toggle(row); return true;
    case 'ArrowUp': case 'ArrowDown': {
      view.cursor = Math.max(0, Math.min(view.rows.length - 1, view.cursor + (key === 'ArrowUp' ? -1 : 1)));
      const now = view.rows[view.cursor];
      if (now.top < holder.scrollTop) holder.scrollTop = now.top;
      if (now.top + now.height > holder.scrollTop + view.height - 50) holder.scrollTop = now.top + now.height - view.height + 50;
      view.paint();
      return true;
    }
    default: return false;
  }
}
