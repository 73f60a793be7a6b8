// The page: a form made of the program's own tables, the program in a worker, and its answer. The address holds the
// question (#workload=gemm&machine=mi300x-8&-M=4096), so that it can be sent to somebody.
import { showAnswer, showFailure, showWork } from './answer.js';

const at = (id) => document.getElementById(id);
const ANSWER = '/answer.json';
const REPORT = '/report.html';

class Program {
  constructor() {
    this.last = 0;
    this.waiting = new Map();
    this.start();
  }

  start() {
    this.worker = new Worker('worker.js');
    this.worker.onmessage = ({ data }) => {
      this.waiting.get(data.id).resolve(data);
      this.waiting.delete(data.id);
    };
    this.worker.onerror = (event) => this.end(event.message ?? 'the program could not be loaded');
  }

  // What was asked fails with that reason, and a new program starts.
  end(reason) {
    this.worker.terminate();
    for (const { reject } of this.waiting.values()) reject(new Error(reason));
    this.waiting.clear();
    this.start();
  }

  ask(words, results = [], files = []) {
    const id = ++this.last;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, words, results, files });
    });
  }
}

// "--tile 256x256x64 --set 'gpu.name=a b'" as a shell splits it.
function wordsOf(text) {
  return [...text.matchAll(/(?:[^\s'"]+|'[^']*'|"[^"]*")+/g)].map(([word]) => word.replace(/'([^']*)'|"([^"]*)"/g, '$1$2'));
}

const shellWord = (word) => (/^[\w\-./+=:@%,]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

const program = new Program();
let form; // what may be asked: wasm/form.hpp
let fields = []; // [{option, input}] of the workload that is chosen

function fieldInput(field) {
  if (field.kind === 'file') return element('input', { type: 'file' });
  if (field.kind === 'name' || field.kind === 'boolean') {
    const values = field.kind === 'name' ? field.names : ['on', 'off'];
    const select = element('select', {}, ...values.map((value) => element('option', { value, textContent: value })));
    const usual = { true: 'on', false: 'off' }[field.usual] ?? field.usual;
    select.value = usual ?? field.example ?? values[0];
    if (field.usual !== null) select.dataset.usual = usual;
    return select;
  }
  const input = element('input', { type: 'text', value: field.required ? field.example ?? '' : '', autocomplete: 'off', spellcheck: false });
  input.inputMode = 'text'; // "64,512,8192" and "64 MiB" are values too
  input.placeholder = field.required ? 'needed' : field.usual ?? 'not given';
  if (field.option === '--gpus') input.placeholder = 'all of the machine';
  return input;
}

function showFields() {
  const workload = form.workloads.find((one) => one.name === at('workload').value);
  at('summary').textContent = workload.summary;
  fields = workload.fields.map((field) => ({ field, input: fieldInput(field) }));
  at('fields').replaceChildren(...fields.map(({ field, input }) => {
    input.id = `field${field.option}`;
    const range = field.kind === 'integer' ? ` (${field.low} to ${field.high.toLocaleString('en')})` : '';
    input.title = field.help + range;
    return element('label', {}, element('span', { textContent: field.option }), input, element('small', { textContent: field.help }));
  }));
}

function showMachine() {
  const machine = form.machines.find((one) => one.name === at('machine').value);
  at('machine-summary').textContent = machine ? machine.description : 'A machine file (TOML) of your own';
  at('machine-file').hidden = machine !== undefined;
}

// The command line, and the files that it names.
async function question() {
  const words = ['--workload', at('workload').value];
  const files = [];
  const add = async (option, input) => {
    if (input.files.length === 0) return;
    const path = `/${input.files[0].name}`;
    files.push({ path, text: await input.files[0].text() });
    words.push(option, path);
  };
  for (const { field, input } of fields) {
    if (field.kind === 'file') await add(field.option, input);
    else if (input.value !== '' && input.value !== input.dataset.usual) words.push(field.option, input.value.trim());
  }
  if (at('machine').value === '') await add('--machine', at('machine-file'));
  else words.push('--machine', at('machine').value);
  if (at('selector').selectedIndex > 0) words.push('--selector', at('selector').value);
  words.push(...wordsOf(at('options').value));
  return { words, files };
}

function remember() {
  const asked = new URLSearchParams();
  for (const id of ['workload', 'machine', 'selector', 'options']) if (at(id).value) asked.set(id, at(id).value);
  for (const { field, input } of fields) if (field.kind !== 'file' && input.value) asked.set(field.option, input.value);
  history.replaceState(null, '', `#${asked}`);
}

// What the address asks; values that a list does not have are left as they are.
function restore() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const put = (input, value) => {
    if (value === null) return;
    const known = input.tagName !== 'SELECT' || [...input.options].some((option) => option.value === value);
    if (known) input.value = value;
  };
  at('selector').selectedIndex = 0;
  at('options').value = '';
  for (const id of ['workload', 'machine', 'selector', 'options']) put(at(id), asked.get(id));
  showFields();
  showMachine();
  for (const { field, input } of fields) if (field.kind !== 'file') put(input, asked.get(field.option));
}

function setBusy(busy) {
  at('advise').disabled = busy;
  at('stop').hidden = !busy;
  if (at('report')) at('report').disabled = busy;
}

// Runs a command while the page says so. Null where it failed or was stopped; then the page says that instead.
async function run(words, results, files) {
  const begin = performance.now();
  setBusy(true);
  showWork(0);
  const clock = setInterval(() => showWork((performance.now() - begin) / 1000), 200);
  try {
    const done = await program.ask(words, results, files);
    if (done.code === 0) return done;
    showFailure(done.errors || `the program ended with code ${done.code}`);
  } catch (error) {
    showFailure(error.message);
  } finally {
    clearInterval(clock);
    setBusy(false);
  }
  return null;
}

async function advise(event) {
  event.preventDefault();
  remember();
  const { words, files } = await question();
  const done = await run(['advise', ...words, '--json', ANSWER], [ANSWER], files);
  window.tritax.last = done;
  if (done === null) return;
  const answer = JSON.parse(done.results[ANSWER]);
  showAnswer(answer, done, ['tritax', 'advise', ...words].map(shellWord).join(' '));
  if (at('report')) at('report').onclick = () => report(words, files);
}

// The page of `tritax report`, as a link: browsers open no window that nobody has clicked for.
async function report(words, files) {
  const shown = [...at('answer').childNodes];
  const done = await run(['report', 'advise', ...words, '--fast', '-o', REPORT], [REPORT], files);
  if (done === null) return;
  const url = URL.createObjectURL(new Blob([done.results[REPORT]], { type: 'text/html' }));
  at('answer').replaceChildren(...shown);
  at('report').replaceWith(element('a', { href: url, target: '_blank', id: 'report-link', textContent: 'open the report' }));
}

async function begin() {
  if (location.protocol === 'file:') {
    showFailure('a page from disk may not load the program; serve this folder, for example with '
      + '"python3 -m http.server", and open http://localhost:8000');
    return;
  }
  showWork(0, 'loading the program');
  try {
    const done = await program.ask(['form']);
    if (done.code !== 0) throw new Error(done.errors);
    form = JSON.parse(done.output);
  } catch (error) {
    showFailure(`the program does not run in this browser (${error.message}); it takes one of 2022 or later, with exceptions in `
      + 'WebAssembly');
    return;
  }
  const fill = (id, rows, text) => at(id).replaceChildren(...rows.map((row) => element('option', { value: row.name, textContent: text(row) })));
  fill('workload', form.workloads, (one) => `${one.title} (${one.name})`);
  fill('machine', form.machines, (one) => `${one.name}: ${one.gpus} GPUs`);
  fill('selector', form.selectors, (one) => one.name);
  const usual = form.machines.find((one) => one.name === 'mi300x-8') ?? form.machines[0];
  at('machine').value = usual.name;
  at('machine').append(element('option', { value: '', textContent: 'a file of your own' }));
  for (const [i, { summary }] of form.selectors.entries()) at('selector').options[i].title = summary;
  restore();
  at('workload').onchange = showFields;
  at('machine').onchange = showMachine;
  at('question').onsubmit = advise;
  at('stop').onclick = () => program.end('stopped');
  window.onhashchange = restore;
  at('answer').replaceChildren();
  at('version').textContent = form.version;
  setBusy(false);
  document.documentElement.dataset.ready = 'yes';
}

window.tritax = { program, last: null };
begin();
