// The sections of the page, each from its part of the data.
import { at, copyButton, element, fixed, number, section, table } from './dom.js';
import { hitsFigure, kParts, parityFigure, sensitivityFigure, taxesFigure } from './figures.js';

// Of one run; `useful` is the sum that layers have.
const kAccount = kParts.filter(({ key }) => key !== 'useful').map(({ key, title }) => [key, title]);

function knobsText(knobs) {
  return Object.entries(knobs ?? {}).filter(([, value]) => value !== null && value !== '')
    .map(([name, value]) => `${name.replaceAll('_', ' ')} ${value === true ? 'on' : value === false ? 'off' : value}`).join(', ');
}

function timeColumn(data, base, key = 'time_us', title = 'time') {
  return { title, unit: 'us', numeric: true, cell: (_, i) => number(data, `${base}.${i}.${key}`) };
}

function accountColumns(data, base, account) {
  return [['launch', 'launch'], ['bulk_synchronous', 'bulk-sync'], ['locality', 'locality']].map(([key, title]) =>
    ({ title, unit: 'us', numeric: true, cell: (_, i) => number(data, `${base}.${i}.${account}.${key}_us`) }));
}

function knobsCell(row) {
  return element('details', {}, element('summary', {}, 'knobs'), knobsText(row.knobs), element('br'), row.command ? element('code', {}, row.command) : null);
}

export function rankingSection(data) {
  const { result } = data;
  const rows = result.candidates;
  const band = result.standing.band ?? 0;
  const mark = (row, i) => [row.tie_with_rank !== i + 1 ? `tie with ${row.tie_with_rank}` : null, row.uncertain ? 'uncertain' : null].filter(Boolean).join(', ');
  const base = 'result.candidates';
  return section('ranking', 'Ranking of patterns',
    result.verdict ? element('p', { class: 'lead' }, result.verdict) : null,
    taxesFigure(`Time of the best of each pattern by what it consists of${band > 0 ? `; whiskers: nine of ten times like the best were within ${fixed(100 * band)} %` : ''}`,
      rows.map((row, i) => ({ label: row.pattern, time_us: row.time_us, parts: row.critical_path, band, mark: mark(row, i) }))),
    table('Best of each pattern', [
      { title: 'rank', numeric: true, cell: (_, i) => i + 1 },
      { title: 'pattern', cell: (row) => row.pattern },
      timeColumn(data, base),
      { title: 'speedup', numeric: true, cell: (_, i) => number(data, `${base}.${i}.speedup`, 2) },
      ...accountColumns(data, base, 'taxes'),
      { title: 'mark', cell: (row, i) => mark(row, i) },
      { title: 'made by', wide: true, cell: knobsCell },
    ], rows),
    data.sentences.map((text) => element('p', {}, text)),
    element('p', { class: 'note' }, `${result.evaluated.toLocaleString('en')} candidates simulated, ${result.given_up.toLocaleString('en')} of them stopped early; `
      + `${result.pruned.toLocaleString('en')} ruled out by their lower bound.`));
}

export function runsSection(data) {
  const rows = data.result.runs;
  const base = 'result.runs';
  return section('ranking', rows.length === 1 ? 'Time and taxes' : 'Runs',
    taxesFigure('Time by what the critical path consists of', rows.map((row) => ({ label: row.id, time_us: row.time_us, parts: row.critical_path }))),
    table('Runs', [
      { title: 'run', cell: (row) => row.id },
      timeColumn(data, base), timeColumn(data, base, 'kernels_us', 'kernels'),
      ...accountColumns(data, base, 'critical_path'),
      { title: 'operand hits in L2', unit: '%', numeric: true, cell: (_, i) => number(data, `${base}.${i}.l2_hit_fraction`, 1, 100) },
      { title: 'HBM', unit: 'MB', numeric: true, cell: (_, i) => number(data, `${base}.${i}.hbm_bytes`, 1, 1e-6) },
      { title: 'machine', cell: (row) => row.machine },
      { title: 'made by', wide: true, cell: knobsCell },
    ], rows));
}

export function layerSection(data) {
  const steps = data.result.steps;
  const base = 'result.steps';
  return section('ranking', 'Steps of a layer',
    taxesFigure('Best pattern of every step', steps.filter((step) => step.taxes).map((step) => ({ label: `${step.step}: ${step.pattern}`, time_us: step.time_us,
      parts: step.taxes, band: step.standing.band ?? 0 }))),
    table('Steps', [
      { title: 'step', cell: (row) => row.step },
      { title: 'layers', numeric: true, cell: (row) => row.layers },
      { title: 'product', cell: (row) => `${row.rows}×${row.columns}×${row.depth}` },
      { title: 'best pattern', cell: (row) => row.pattern },
      timeColumn(data, base), timeColumn(data, base, 'libraries_us', 'libraries'),
      { title: 'fuse?', cell: (row) => row.verdict },
      { title: 'made by', wide: true, cell: knobsCell },
    ], steps),
    table('Sums', [
      { title: 'sum of', cell: (row) => row.sum },
      { title: 'layers', numeric: true, cell: (row) => row.layers },
      timeColumn(data, 'result.sums', 'libraries_us', 'libraries'),
      timeColumn(data, 'result.sums', 'chosen_us', 'fused where it pays'),
      timeColumn(data, 'result.sums', 'best_us', 'best patterns'),
    ], data.result.sums),
    data.sentences.map((text) => element('p', {}, text)));
}

export function paritySection(data) {
  const { result } = data;
  const base = 'result.rows';
  return section('parity', `Predicted and measured, ${result.clock} time`,
    parityFigure('Predicted over measured times; dashed: ±10 %', result.rows.map((row) =>
      ({ id: row.id, pattern: row.pattern, measured: row.measured_us, predicted: row.predicted_us, error: 100 * row.error }))),
    element('p', {}, number(data, 'result.summary.rows', 0), ' rows: median |error| ', number(data, 'result.summary.median_abs_error', 1, 100), ' %, 90th percentile ',
      number(data, 'result.summary.p90_abs_error', 1, 100), ' %.'),
    element('details', {}, element('summary', {}, 'All rows'), table('Rows', [
      { title: 'id', cell: (row) => row.id },
      { title: 'machine', cell: (row) => row.machine },
      { title: 'GPUs', numeric: true, cell: (row) => row.gpus },
      timeColumn(data, base, 'measured_us', 'measured'), timeColumn(data, base, 'predicted_us', 'predicted'),
      { title: 'error', unit: '%', numeric: true, cell: (_, i) => number(data, `${base}.${i}.error`, 1, 100) },
    ], result.rows)));
}

export function timeSection(data) {
  const { run } = data;
  const total = run.time_us;
  return section('time', 'Where the time goes',
    element('p', { class: 'lead' }, run.title),
    run.sentences.map((text) => element('p', {}, text)),
    table('Along the critical path', [
      { title: 'part', cell: ([, title]) => title },
      { title: 'time', unit: 'us', numeric: true, cell: ([key]) => number(data, `run.critical_path.${key}_us`) },
      { title: 'share', unit: '%', numeric: true, cell: ([key]) => number(data, `run.critical_path.${key}_us`, 1, 100 / total) },
    ], kAccount.filter(([key]) => at(data, `run.critical_path.${key}_us`) > 0 || key !== 'harness')),
    run.overlap.some((one) => one.communicating_us > 0) ? table('Computing and communicating', [
      { title: 'GPU', numeric: true, cell: (row) => row.gpu },
      ...[['computing', 'computing'], ['communicating', 'communicating'], ['both', 'both at once'], ['idle', 'neither']].map(([key, title]) =>
        ({ title, unit: 'us', numeric: true, cell: (_, i) => number(data, `run.overlap.${i}.${key}_us`) })),
      { title: 'communicating hidden', unit: '%', numeric: true, cell: (_, i) => number(data, `run.overlap.${i}.hidden`, 1, 100) },
    ], run.overlap) : null,
    table('What a run without a tax saves', [
      { title: 'without', cell: ([, title]) => title },
      { title: 'saved', unit: 'us', numeric: true, cell: ([key]) => number(data, `run.taxes.counterfactual.${key}`) },
    ], [['launch_us', 'launches'], ['bulk_synchronous_us', 'bulk-synchronous waiting'], ['locality_us', 'lost locality']]));
}

export function hitsSection(data) {
  const sums = new Map();
  for (const row of data.run.caches.rows) {
    if (row.die === null) continue;
    const key = `${row.gpu} ${row.die}`;
    const sum = sums.get(key) ?? { gpu: row.gpu, die: row.die, asked: 0, l2: 0, llc: 0 };
    sum.asked += row.asked;
    sum.l2 += row.l2_hit;
    sum.llc += row.llc_hit;
    sums.set(key, sum);
  }
  const rows = [...sums.values()].filter((sum) => sum.asked > 0).sort((a, b) => a.gpu - b.gpu || a.die - b.die)
    .map((sum) => ({ gpu: sum.gpu, die: sum.die, l2: 100 * sum.l2 / sum.asked, llc: sum.asked > sum.l2 ? 100 * sum.llc / (sum.asked - sum.l2) : null, megabytes: sum.asked / 1e6 }));
  if (rows.length === 0) return null;
  return section('hits', 'Hit rates by die',
    hitsFigure('Bytes that the L2 of each die had, of those that its operations asked for (%)', rows),
    element('p', {}, 'All dies: L2 ', number(data, 'run.caches.l2_hit', 1, 100), ' %, last-level cache ', number(data, 'run.caches.llc_hit', 1, 100),
      ' % of the rest. Operands of products alone: L2 ', number(data, 'run.caches.operand_l2_hit', 1, 100), ' %, last-level cache ',
      number(data, 'run.caches.operand_llc_hit', 1, 100), ' % of the rest. HBM traffic: ', number(data, 'run.caches.hbm_bytes', 1, 1e-6), ' MB.'));
}

export function sensitivitySection(data) {
  const { run } = data;
  const strongest = run.with_effect.slice(0, 16);
  const parts = [];
  if (strongest.length > 0) parts.push(sensitivityFigure(`What each input changes, varied one at a time${run.with_effect.length > 16 ? ': the 16 strongest' : ''}`, strongest, run.time_us));
  parts.push(element('details', {}, element('summary', {}, `All ${run.with_effect.length} inputs that change the time`),
    table('Inputs that change the time', [
      { title: 'input', cell: (row) => row.input }, { title: 'value', cell: (row) => row.value },
      { title: 'varied to', cell: (row) => row.variations.map((one) => one.value).join('; ') },
      { title: 'largest change', unit: '%', numeric: true, cell: (_, i) => number(data, `run.with_effect.${i}.effect`, 2, 100) },
    ], run.with_effect)));
  if (run.without_effect.length > 0) parts.push(element('p', {}, `No effect: ${run.without_effect.map((one) => one.input).join(', ')}.`));
  return section('inputs', 'What the time depends on', parts);
}

export function machineSection(data) {
  return section('machine', data.machines.length === 1 ? 'Machine' : 'Machines', data.machines.map((machine, m) => {
    const compared = machine.compared.length === 0
      ? element('p', {}, 'No prediction for this machine was compared with measurements.')
      : table('What predictions were compared with', [
        { title: 'workload', cell: (row) => row.workload },
        { title: 'rows', numeric: true, cell: (_, i) => number(data, `machines.${m}.compared.${i}.rows`, 0) },
        { title: 'of', cell: (row) => row.of },
        { title: 'nine of ten are within', unit: '%', numeric: true, cell: (_, i) => number(data, `machines.${m}.compared.${i}.nine_of_ten`, 0, 100) },
        { title: 'problems', wide: true, cell: (row) => element('code', {}, row.problems) },
        { title: 'set', wide: true, cell: (row) => row.source },
      ], machine.compared);
    return element('div', {}, element('h3', {}, machine.title), element('p', {}, `${machine.description}; ${machine.nodes} × ${machine.gpus_per_node} ${machine.gpu} (${machine.arch}).`), compared,
      element('details', {}, element('summary', {}, `All ${machine.parameters.length} parameters with their sources`),
        table(`Parameters of ${machine.title}`, [
          { title: 'parameter', cell: (row) => element('code', {}, row.key) },
          { title: 'value', numeric: true, cell: (row) => row.value },
          { title: 'unit', cell: (row) => row.unit },
          { title: 'how', cell: (row) => row.how },
          { title: 'source, or reason for an assumption', wide: true, cell: (row) => row.source },
        ], machine.parameters)));
  }));
}

export function againSection(data, text) {
  const name = `tritax-${data.kind}.json`;
  return section('again', 'To make it again',
    element('p', {}, element('code', { class: 'command' }, data.command), ' ', copyButton(data.command)),
    element('p', {}, `tritax ${data.version}. `, element('button', { type: 'button', onclick: () => {
      const link = element('a', { href: URL.createObjectURL(new Blob([text], { type: 'application/json' })), download: name });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    } }, 'Save the data of this page (JSON)')),
    element('p', { class: 'note' }, 'Figures are Vega-Lite; the spec below each holds its data. Licences of what the page is made of stand at the head of its script.'));
}
