// Figures by Vega-Lite. Each spec holds its data, so that whoever opens it elsewhere gets the same figure.
import { compile } from 'vega-lite';
import { View, parse } from './vega.js';
import { element, copyButton } from './dom.js';

// Okabe and Ito's colours (https://jfly.uni-koeln.de/color): useful parts cool, taxes warm.
export const kParts = [
  { key: 'compute', title: 'useful compute', colour: '#0072B2' },
  { key: 'memory', title: 'useful memory', colour: '#56B4E9' },
  { key: 'wire', title: 'useful wire', colour: '#009E73' },
  { key: 'launch', title: 'launch tax', colour: '#E69F00' },
  { key: 'bulk_synchronous', title: 'bulk-synchronous tax', colour: '#D55E00' },
  { key: 'locality', title: 'locality tax', colour: '#CC79A7' },
  { key: 'contention', title: 'contention', colour: '#F0E442' },
  { key: 'harness', title: 'harness', colour: '#999999' },
  { key: 'useful', title: 'useful', colour: '#0072B2' },
];

// The ink of the page, whatever it is: figures turn with dark, light and paper.
const kConfig = {
  background: null,
  font: 'system-ui, sans-serif',
  view: { stroke: null },
  axis: { labelColor: 'currentColor', titleColor: 'currentColor', gridColor: 'currentColor', gridOpacity: 0.15,
    domainColor: 'currentColor', tickColor: 'currentColor', labelFontSize: 12, titleFontSize: 12, titleFontWeight: 'normal',
    labelLimit: 220 },
  legend: { labelColor: 'currentColor', titleColor: 'currentColor', orient: 'bottom', direction: 'horizontal', columns: 4,
    labelFontSize: 12, title: null, symbolType: 'square' },
  text: { color: 'currentColor', fontSize: 12 },
  rule: { color: 'currentColor' },
  tick: { color: 'currentColor' },
};

export function figure(caption, spec) {
  const holder = element('div', { class: 'vega', role: 'img', 'aria-label': caption });
  const text = JSON.stringify({ $schema: 'https://vega.github.io/schema/vega-lite/v6.json', ...spec }, null, 1);
  const node = element('figure', {}, element('figcaption', {}, caption), holder,
    element('details', { class: 'spec' }, element('summary', {}, 'Vega-Lite spec'), copyButton(text), element('pre', { tabindex: '0' }, text)));
  let width = 0;
  const draw = () => {
    const now = Math.floor(holder.clientWidth);
    if (now === 0 || now === width) return;
    width = now;
    const narrow = now < 560;
    const config = { ...kConfig, legend: { ...kConfig.legend, columns: narrow ? 2 : 4 },
      axis: { ...kConfig.axis, labelLimit: narrow ? 110 : 240 } };
    const view = new View(parse(compile({ ...spec, width: now, autosize: { type: 'fit-x', contains: 'padding' }, config }).spec),
      { renderer: 'svg', hover: false });
    holder.replaceChildren();
    view.initialize(holder).run();
  };
  new ResizeObserver(draw).observe(holder);
  return node;
}

// Rows: [{ label, time_us, parts: {key_us}, band, mark }], in their order.
export function taxesFigure(caption, rows) {
  const order = rows.map((row) => row.label);
  const used = kParts.filter((part) => rows.some((row) => row.parts[`${part.key}_us`] > 0));
  const bars = rows.flatMap((row) => used.map((part, place) =>
    ({ row: row.label, part: part.title, place, us: row.parts[`${part.key}_us`] ?? 0 })));
  const ends = rows.map((row) => ({ row: row.label, us: row.time_us, low: row.time_us / (1 + (row.band ?? 0)),
    high: row.time_us * (1 + (row.band ?? 0)), text: row.mark ?? '' }));
  const y = { field: 'row', type: 'nominal', sort: order, axis: { title: null, domain: false, ticks: false } };
  const layers = [{
    data: { values: bars },
    mark: { type: 'bar', height: 18 },
    encoding: {
      y, x: { field: 'us', type: 'quantitative', stack: 'zero', title: 'time (us)' },
      order: { field: 'place' },
      color: { field: 'part', type: 'nominal', scale: { domain: used.map((part) => part.title), range: used.map((part) => part.colour) } },
      tooltip: [{ field: 'row' }, { field: 'part' }, { field: 'us', format: '.1f', title: 'us' }],
    },
  }];
  if (rows.some((row) => row.band > 0)) {
    layers.push({ data: { values: ends }, mark: { type: 'rule', strokeWidth: 1.5 },
      encoding: { y, x: { field: 'low', type: 'quantitative' }, x2: { field: 'high' } } });
    for (const end of ['low', 'high']) {
      layers.push({ data: { values: ends }, mark: { type: 'tick', thickness: 1.5, size: 10 },
        encoding: { y, x: { field: end, type: 'quantitative' } } });
    }
  }
  return figure(caption, { height: 30 * rows.length, layer: layers });
}

// How much longer or shorter the run gets with inputs varied: [{input, variations}], strongest first.
export function sensitivityFigure(caption, inputs, timeUs) {
  const values = inputs.flatMap((input) => input.variations.filter((one) => one.time_us !== null)
    .map((one) => ({ input: `${input.input}`, from: input.value, to: one.value, percent: 100 * (one.time_us / timeUs - 1) })));
  return figure(caption, {
    height: 20 * inputs.length,
    data: { values },
    layer: [{
      mark: { type: 'bar', height: 12 },
      encoding: {
        y: { field: 'input', type: 'nominal', sort: inputs.map((input) => input.input), axis: { title: null } },
        x: { field: 'percent', type: 'quantitative', stack: null, title: 'change of the time (%)' },
        color: { condition: { test: 'datum.percent > 0', value: '#D55E00' }, value: '#0072B2' },
        tooltip: [{ field: 'input' }, { field: 'from' }, { field: 'to' }, { field: 'percent', format: '+.2f', title: '%' }],
      },
    }],
  });
}

// Rows: [{gpu, die, l2, llc, asked}], percents.
export function hitsFigure(caption, rows) {
  const dies = rows.length > 0 && rows.some((row) => row.die > 0);
  return figure(caption, {
    data: { values: rows },
    height: 24 * new Set(rows.map((row) => row.gpu)).size,
    layer: [
      { mark: { type: 'rect' }, encoding: { color: { field: 'l2', type: 'quantitative', scale: { scheme: 'cividis' },
        legend: { title: 'L2 hits (%)', gradientLength: 160, orient: 'bottom' } },
      tooltip: [{ field: 'gpu' }, { field: 'die' }, { field: 'l2', format: '.1f', title: 'L2 hits %' },
        { field: 'llc', format: '.1f', title: 'last-level hits of the rest %' }, { field: 'megabytes', format: '.1f', title: 'asked MB' }] } },
      { mark: { type: 'text', fontSize: 11, stroke: null },
        encoding: { text: { field: 'l2', format: '.1f' }, color: { field: 'l2', type: 'quantitative', legend: null,
          scale: { type: 'threshold', domain: [threshold(rows)], range: ['#ffffff', '#000000'] } } } },
    ],
    encoding: { x: { field: 'die', type: 'ordinal', title: dies ? 'die' : 'die of the GPU', axis: { labelAngle: 0 } },
      y: { field: 'gpu', type: 'ordinal', title: 'GPU' } },
    resolve: { scale: { color: 'independent' } },
  });
}

// Where ink on cividis turns from white to black: the middle of what is shown.
function threshold(rows) {
  const hits = rows.map((row) => row.l2).filter((hit) => hit !== null);
  return (Math.min(...hits) + Math.max(...hits)) / 2;
}

// Predicted over measured, both logarithmic: [{measured, predicted, pattern, id}].
export function parityFigure(caption, rows) {
  const all = rows.flatMap((row) => [row.measured, row.predicted]);
  const domain = [Math.min(...all) * 0.9, Math.max(...all) * 1.1];
  const line = (factor) => domain.map((x) => ({ x, y: x * factor, factor }));
  return figure(caption, {
    height: 420,
    layer: [
      { data: { values: [...line(1), ...line(0.9), ...line(1.1)] },
        mark: { type: 'line', clip: true, color: 'currentColor', opacity: 0.5, strokeWidth: 1 },
        encoding: { x: { field: 'x', type: 'quantitative' }, y: { field: 'y', type: 'quantitative' }, detail: { field: 'factor' },
          strokeDash: { condition: { test: 'datum.factor != 1', value: [4, 4] }, value: [1, 0] } } },
      { data: { values: rows }, mark: { type: 'point', filled: true, size: 45, opacity: 0.7 },
        encoding: {
          x: { field: 'measured', type: 'quantitative', scale: { type: 'log', domain }, title: 'measured (us)' },
          y: { field: 'predicted', type: 'quantitative', scale: { type: 'log', domain }, title: 'predicted (us)' },
          color: { field: 'pattern', type: 'nominal', scale: { range: kParts.slice(0, 8).map((part) => part.colour) } },
          shape: { field: 'pattern', type: 'nominal' },
          tooltip: [{ field: 'id' }, { field: 'pattern' }, { field: 'measured', format: '.1f' }, { field: 'predicted', format: '.1f' },
            { field: 'error', format: '+.1f', title: 'error %' }],
        } },
    ],
  });
}
