// Use of the links over time, by uPlot: the mean of all and the busiest, or those of one GPU.
import uPlot from 'uplot';
import { column } from './columns.js';
import { drawn, element, colour, fixed } from './dom.js';

const kColours = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#999999', '#8a6d00'];
const kDashes = [[], [6, 3], [2, 2], [8, 3, 2, 3]];

export function linksPanel(timeline) {
  const links = timeline.links.map((link) => ({ ...link, rates: column(link.rates) }));
  if (links.length === 0) return null;
  const parts = links[0].rates.length;
  const us = timeline.end * timeline.tick_ns / 1000;
  const times = Array.from({ length: parts }, (_, i) => (i + 0.5) / parts * us);
  const mean = times.map((_, i) => links.reduce((sum, link) => sum + link.rates[i] / link.raw_gb_per_s, 0) / links.length * 100);
  const busiest = times.map((_, i) => Math.max(...links.map((link) => link.rates[i] / link.raw_gb_per_s)) * 100);
  const froms = [...new Set(links.map((link) => link.name.split('->')[0]))];
  const select = element('select', { 'aria-label': 'Which links' }, element('option', { value: '' }, `all ${links.length} links: mean and busiest`),
    froms.map((from) => element('option', { value: from }, `from ${from}`)));
  const holder = element('div', { class: 'uplot-holder', role: 'img', 'aria-label': 'Use of links over time' });
  let plot = null;
  const draw = () => {
    if (holder.clientWidth === 0) return;
    const chosen = links.filter((link) => link.name.split('->')[0] === select.value);
    const series = select.value === ''
      ? [['mean', mean], ['busiest', busiest]]
      : chosen.map((link) => [link.name, Array.from(link.rates, (rate) => rate / link.raw_gb_per_s * 100)]);
    const axis = { stroke: colour('ink'), grid: { stroke: colour('faint'), width: 1 }, ticks: { stroke: colour('faint'), width: 1 }, font: '12px system-ui, sans-serif' };
    if (plot) plot.destroy();
    plot = new uPlot({
      width: holder.clientWidth, height: 240,
      cursor: { drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(high * 1.05, 1)] } },
      axes: [{ ...axis, label: 'time (us)', labelSize: 20, labelFont: axis.font }, { ...axis, label: 'use of the raw rate (%)', labelSize: 20, labelFont: axis.font, size: 46 }],
      series: [{ label: 'us', value: (_, value) => (value === null ? '–' : fixed(value, 1)) }, ...series.map(([label], i) => ({ label, width: 1.5, points: { show: false },
        stroke: kColours[i % kColours.length], dash: kDashes[Math.floor(i / kColours.length + (select.value === '' ? i : 0)) % kDashes.length],
        value: (_, value) => (value === null ? '–' : `${fixed(value, 1)} %`) }))],
    }, [times, ...series.map(([, values]) => values)], holder);
  };
  select.addEventListener('change', draw);
  drawn(draw);
  let width = 0;
  new ResizeObserver(() => {
    if (holder.clientWidth === width) return;
    width = holder.clientWidth;
    draw();
  }).observe(holder);
  return element('div', { class: 'links' }, select, holder, element('p', { class: 'note' }, 'Drag over the figure to zoom, double-click to see all.'));
}
