// What the page says: the answer of `advise` as a ranking, what is wrong with a question, or that work goes on. Every number
// carries its place in the answer (data-path), so that a test can compare.

const PARTS = [
  ['compute_us', 'computing'], ['memory_us', 'local memory'], ['wire_us', 'links'], ['launch_us', 'launch tax'],
  ['bulk_synchronous_us', 'bulk-synchronous tax'], ['locality_us', 'locality tax'], ['contention_us', 'contention'],
  ['harness_us', 'harness'],
];

function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

const show = (...nodes) => document.getElementById('answer').replaceChildren(...nodes);

export function showWork(seconds, what = 'searching') {
  show(element('p', { className: 'work', textContent: seconds < 1 ? `${what} …` : `${what}, ${seconds.toFixed(0)} s` }));
}

export function showFailure(message) {
  show(element('p', { className: 'failure', textContent: message.replace(/^tritax: /gm, '') }));
  document.querySelector('.failure').setAttribute('role', 'alert');
}

// A time in microseconds for people: "769.7 us", "1.496 ms".
export const timeText = (us) => (us < 999.95 ? `${us.toFixed(1)} us` : us < 999950 ? `${(us / 1e3).toFixed(3)} ms` : `${(us / 1e6).toFixed(3)} s`);

function numberCell(answer, path, text = (value) => value.toFixed(1)) {
  const value = path.split('.').reduce((node, key) => node[key], answer);
  const cell = element('td', { className: 'number', textContent: value === null ? '–' : text(value) });
  cell.dataset.path = path;
  return cell;
}

// What the critical path is made of; as long as the time, beside the slowest.
function bar(candidate, longest) {
  const line = element('div', { className: 'bar' });
  line.style.width = `${100 * candidate.time_us / longest}%`;
  for (const [key, name] of PARTS) {
    const us = candidate.critical_path[key];
    if (!(us > 0)) continue;
    const part = element('span', { className: key, title: `${name}: ${timeText(us)}` });
    part.style.flexGrow = us;
    line.append(part);
  }
  return line;
}

function marks(candidate) {
  const said = [];
  if (candidate.tie_with_rank !== null) said.push('tie');
  if (candidate.uncertain !== null) said.push('uncertain');
  return element('td', { textContent: said.join(', '), title: candidate.uncertain ?? '' });
}

function knobsText(knobs) {
  return Object.entries(knobs).filter(([, value]) => value !== null).map(([key, value]) => `${key} ${value}`).join(', ');
}

function ranking(answer) {
  const heads = ['', 'pattern', 'time', 'speedup', 'launch', 'bulk-sync', 'locality', '', 'where the time goes'];
  const longest = Math.max(...answer.candidates.map((one) => one.time_us));
  const rows = answer.candidates.map((candidate, i) => {
    const own = `candidates.${i}`;
    const row = element('tr', {}, element('td', { className: 'number', textContent: i + 1 }),
      element('td', {}, element('b', { textContent: candidate.pattern }), element('small', { textContent: knobsText(candidate.knobs) })),
      numberCell(answer, `${own}.time_us`, timeText), numberCell(answer, `${own}.speedup`, (value) => value.toFixed(2)),
      numberCell(answer, `${own}.taxes.launch_us`), numberCell(answer, `${own}.taxes.bulk_synchronous_us`),
      numberCell(answer, `${own}.taxes.locality_us`), marks(candidate), element('td', { className: 'bars' }, bar(candidate, longest)));
    return row;
  });
  return element('div', { className: 'wide' }, element('table', {},
    element('thead', {}, element('tr', {}, ...heads.map((text) => element('th', { textContent: text })))),
    element('tbody', {}, ...rows)),
  element('p', { className: 'legend' }, ...PARTS.map(([key, name]) => element('span', {}, element('i', { className: key }), ` ${name} `)),
    ' · taxes in us'));
}

function headline(answer) {
  const [first] = answer.candidates;
  if (!first) return 'No pattern can be built for this.';
  const tied = answer.candidates.filter((one) => one.tie_with_rank === 1).length;
  const beside = first.speedup === null ? '' : `, ${first.speedup.toFixed(2)} times as fast as the baseline`;
  const tie = tied > 1 ? ` The first ${tied} differ by less than the prediction band.` : '';
  return `${first.pattern} takes ${timeText(first.time_us)}${beside}.${tie}`;
}

// One answer in figures; of several questions the table that the terminal shows.
export function showAnswer(answer, done, command) {
  const terminal = element('details', { open: !answer.candidates }, element('summary', { textContent: 'as the terminal shows it' }),
    element('pre', { textContent: done.output }));
  const json = URL.createObjectURL(new Blob([JSON.stringify(answer, null, 2)], { type: 'application/json' }));
  const below = element('p', { className: 'below' }, `${done.seconds.toFixed(1)} s in this browser. `,
    element('a', { href: json, download: 'tritax.json', textContent: 'JSON' }));
  const nodes = [];
  if (answer.candidates) {
    nodes.push(element('h2', { textContent: done.output.split('\n')[0] }), element('p', { className: 'headline', textContent: headline(answer) }));
    if (answer.verdict) nodes.push(element('p', { textContent: answer.verdict }));
    nodes.push(ranking(answer), element('ul', {}, ...[...answer.explanation, ...answer.standing.cautions,
      ...answer.left_out.map((text) => `Left out: ${text}`)].map((text) => element('li', { textContent: text }))));
    below.append(' ', element('button', { type: 'button', id: 'report', textContent: 'make the report page' }));
  }
  nodes.push(element('p', {}, 'The same on your computer: ', element('code', { textContent: command })), terminal, below);
  show(...nodes);
}
