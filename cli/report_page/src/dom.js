// Elements and numbers of the page.

// An element: element('p', { class: 'note' }, 'text', child, …).
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

export function fixed(value, digits = 1) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// What stands at "result.candidates.0.time_us" of the data.
export function at(data, path) {
  return path.split('.').reduce((value, key) => (value === null || value === undefined ? value : value[key]), data);
}

// A number of the data with its place, so that a reader (and a test) finds it there.
export function number(data, path, digits = 1, scale = 1) {
  const value = at(data, path);
  const known = typeof value === 'number';
  return element('span', { class: 'number', 'data-path': path, 'data-digits': digits, 'data-scale': scale },
    known ? fixed(value * scale, digits) : '–');
}

// Columns: { title, unit, cell: (row, index) => content, numeric, wide }; wide ones hold sentences.
export function table(caption, columns, rows) {
  return element('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption },
    element('table', {},
      element('caption', {}, caption),
      element('thead', {}, element('tr', {}, columns.map((column) =>
        element('th', { scope: 'col', class: column.numeric ? 'numeric' : column.wide ? 'wide' : null }, column.title,
          column.unit ? element('small', {}, ` ${column.unit}`) : null)))),
      element('tbody', {}, rows.map((row, index) => element('tr', {}, columns.map((column) => {
        const content = column.cell(row, index);
        return element('td', { class: column.numeric ? 'numeric' : column.wide ? 'wide' : null }, content === undefined ? '–' : content);
      }))))));
}

export function section(id, title, ...children) {
  return element('section', { id, 'aria-labelledby': `${id}-title` }, element('h2', { id: `${id}-title` }, title), ...children);
}

export function copyButton(text, label = 'Copy') {
  const button = element('button', { type: 'button', class: 'copy' }, label);
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(typeof text === 'function' ? text() : text);
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Select and copy by hand';
    }
    setTimeout(() => { button.textContent = label; }, 1500);
  });
  return button;
}

const listeners = [];
// Calls `draw` now, and again whenever colours change: dark or light, screen or paper.
export function drawn(draw) {
  listeners.push(draw);
  draw();
}
export function redraw() {
  for (const draw of listeners) draw();
}
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
