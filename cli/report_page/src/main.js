// Reads the data that stands in the page and builds the page from it (cli/page.hpp says what is in the data).
import { element, redraw, section } from './dom.js';
import { linksPanel } from './links.js';
import { timelinePanel } from './timeline_panel.js';
import uplotStyle from 'uplot/dist/uPlot.min.css';
import {
  againSection, hitsSection, layerSection, machineSection, paritySection, rankingSection, runsSection, sensitivitySection, timeSection,
} from './sections.js';

const kFirst = { advise: rankingSection, simulate: runsSection, layer: layerSection, validate: paritySection };

function build() {
  const text = document.getElementById('data').textContent;
  const data = JSON.parse(text);
  document.head.append(element('style', {}, uplotStyle));
  const sections = [kFirst[data.kind](data)];
  let panel = null;
  if (data.run) {
    panel = timelinePanel(data.run.timeline);
    const links = linksPanel(data.run.timeline);
    sections.push(timeSection(data), section('timeline', 'Timeline', panel.node));
    if (links) sections.push(section('links', 'Use of the links', links));
    sections.push(hitsSection(data), data.run.with_effect.length > 0 ? sensitivitySection(data) : null);
  }
  sections.push(machineSection(data), againSection(data, text));
  const shown = sections.filter(Boolean);
  const nav = element('nav', { 'aria-label': 'Sections' }, shown.map((one) =>
    element('a', { href: `#${one.id}` }, one.querySelector('h2').textContent)));
  document.getElementById('page').replaceChildren(
    element('header', {}, element('h1', {}, data.title), element('p', { class: 'note' }, `tritax ${data.version}, ${data.machines.map((machine) => machine.title).join('; ')}`)),
    nav, ...shown);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  for (const event of ['beforeprint', 'afterprint']) addEventListener(event, redraw);
  // For whoever wants more than the page shows, in the browser's console.
  window.tritax = { data, view: panel ? panel.view : null };
  requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset.ready = 'yes'; }));
}

build();
