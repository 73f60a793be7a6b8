// Whether the page of wasm/ answers as the program does, soon, and stays alive:
//
//   node check.mjs CHROMIUM PAGE_FOLDER TRITAX [--seconds 10] [--only WORD] [--picture FILE.png]
//
// TRITAX is the native program of the same sources; its JSON and that of the page must be equal: every text, count and
// knob, and every other number to 12 digits, since some differ in the last bits, as functions of two C libraries do.
// --only: of the questions those that have the word.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { Browser } from '../report_page/browser.mjs';

const words = process.argv.slice(2);
const option = (name) => {
  const at = words.indexOf(name);
  return at < 0 ? undefined : words.splice(at, 2)[1];
};
const mostSeconds = Number(option('--seconds') ?? 10);
const pictureFile = option('--picture');
const only = option('--only');
const [chromium, folder, tritax] = words;

// The first is that of the README; then another workload and machine, and knobs that are held.
const QUESTIONS = [
  { workload: 'gemm-all-scatter', machine: 'mi300x-8', '-M': '8192', '-N': '4608', '-K': '36864' },
  { workload: 'gemm-all-scatter', machine: 'h100-4', '-M': '64', '-N': '512', '-K': '1024', '--gpus': '2' },
  { workload: 'all-to-all', machine: 'mi300x-8', '--rows': '4096', '--cols': '4096' },
  { workload: 'gemm', machine: 'h200-8', '-M': '4096', '-N': '4096', '-K': '4096', options: '--tile 128x128x64 --scale gpu.hbm_bandwidth=0.5' },
];

const faults = [];
const expect = (condition, text) => { if (!condition) faults.push(text); };

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm' };
const server = createServer((request, response) => {
  const path = normalize(new URL(request.url, 'http://localhost').pathname).replace(/\/$/, '/index.html');
  try {
    response.writeHead(200, { 'Content-Type': TYPES[extname(path)] ?? 'text/plain' }).end(readFileSync(join(folder, path)));
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const origin = `http://127.0.0.1:${server.address().port}`;

const browser = await Browser.start(chromium);
browser.handlers.push((method, params) => {
  if (method === 'Runtime.exceptionThrown') faults.push(`exception: ${params.exceptionDetails.exception?.description ?? params.exceptionDetails.text}`);
  if (method === 'Runtime.consoleAPICalled' && ['error', 'warning', 'assert'].includes(params.type)) {
    faults.push(`console ${params.type}: ${params.args.map((arg) => arg.value ?? arg.description).join(' ')}`);
  }
  if (method === 'Log.entryAdded' && ['error', 'warning'].includes(params.entry.level)) faults.push(`log: ${params.entry.text} ${params.entry.url ?? ''}`);
  if (method === 'Network.requestWillBeSent' && !params.request.url.startsWith(origin) && !/^(data|blob|about):/.test(params.request.url)) {
    faults.push(`asks the network: ${params.request.url}`);
  }
});

const pause = (ms) => new Promise((wake) => setTimeout(wake, ms));
async function until(expression, seconds, what) {
  for (const begin = performance.now(); !await browser.evaluate(expression);) {
    if (performance.now() - begin > 1000 * seconds) throw new Error(`${what}: not after ${seconds} s; ${faults.join('; ')}`);
    await pause(20);
  }
}
const ask = (question) => browser.evaluate(`location.hash = ${JSON.stringify(`#${new URLSearchParams(question)}`)}`);
const click = (id) => browser.evaluate(`document.getElementById('${id}').click()`);
const IDLE = 'document.getElementById("stop").hidden && document.querySelector(".work") === null';

function nativeAnswer(question, work) {
  const { workload, machine, options, ...fields } = question;
  const file = join(work, 'answer.json');
  const all = ['advise', '--workload', workload, ...Object.entries(fields).flat(), '--machine', machine,
    ...(options ? options.split(' ') : []), '--json', file];
  execFileSync(tritax, all, { stdio: 'ignore' });
  return readFileSync(file, 'utf8');
}

// A femtosecond where a time is what is left of a difference of two.
const isSame = (a, b) => a === b || (typeof a === 'number' && typeof b === 'number' && !(Number.isInteger(a) && Number.isInteger(b))
  && Math.abs(a - b) <= Math.max(1e-9, 1e-12 * Math.abs(a)));

// Where two answers differ.
function differences(a, b, path = '') {
  if (isSame(a, b)) return [];
  if (typeof a !== 'object' || a === null || typeof b !== 'object' || b === null) return [`${path}: ${b}, not ${a}`];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((key) => differences(a[key], b[key], `${path}.${key}`));
}

// The time of the answer, and the longest that the page took to react meanwhile.
async function answer(question) {
  await ask(question);
  await pause(50);
  const begin = performance.now();
  await click('advise');
  let slowest = 0;
  for (;;) {
    const asked = performance.now();
    const idle = await browser.evaluate(IDLE);
    slowest = Math.max(slowest, performance.now() - asked);
    if (idle) break;
    if (asked - begin > 300_000) throw new Error('no answer after 300 s');
    await pause(20);
  }
  return { seconds: (performance.now() - begin) / 1000, slowest };
}

async function checkAnswers(work) {
  for (const question of QUESTIONS) {
    const name = Object.values(question).join(' ');
    if (only && !name.includes(only)) continue;
    const { seconds, slowest } = await answer(question);
    const failure = await browser.evaluate('document.querySelector(".failure")?.textContent ?? ""');
    expect(failure === '', `${name}: ${failure}`);
    if (failure) continue;
    const text = await browser.evaluate('tritax.last.results["/answer.json"]');
    const found = JSON.parse(text);
    const differ = differences(JSON.parse(nativeAnswer(question, work)), found);
    expect(differ.length === 0, `${name}: ${differ.length} values are not those of the program: ${differ.slice(0, 5).join('; ')}`);
    expect(seconds < mostSeconds, `${name}: ${seconds.toFixed(1)} s, more than ${mostSeconds}`);
    expect(slowest < 1000, `${name}: the page slept for ${slowest.toFixed(0)} ms`);
    const shown = await browser.evaluate(`[...document.querySelectorAll('td[data-path]')].map((node) => [node.dataset.path, node.textContent])`);
    expect(shown.length === 5 * found.candidates.length, `${name}: shows ${shown.length} numbers of ${found.candidates.length} candidates`);
    for (const [path, said] of shown) {
      const value = path.split('.').reduce((node, key) => node[key], found);
      const scale = said.endsWith(' ms') ? 1e3 : said.endsWith(' s') ? 1e6 : 1;
      const digits = said.replace(/ .*/, '').split('.')[1]?.length ?? 0;
      const right = value === null ? said === '–' : Math.abs(parseFloat(said) * scale - value) <= 0.5000001 * scale * 10 ** -digits;
      expect(right, `${name}: ${path} shows '${said}' for ${value}`);
    }
    console.log(`${name}: ${found.evaluated} simulated, ${seconds.toFixed(1)} s, page reacts within ${slowest.toFixed(0)} ms, `
      + `best ${found.candidates[0].pattern} ${found.candidates[0].time_us.toFixed(1)} us`);
    if (pictureFile && question === QUESTIONS[0]) await picture();
  }
}

async function picture() {
  await browser.call('Emulation.setDeviceMetricsOverride', { width: 1200, height: 900, deviceScaleFactor: 1, mobile: false });
  const { data } = await browser.call('Page.captureScreenshot', { format: 'png' });
  writeFileSync(pictureFile, Buffer.from(data, 'base64'));
}

// What cannot be is refused in words, by the program and by nothing else, and the next question is answered.
async function checkRefusals() {
  const good = QUESTIONS[1];
  for (const [change, wanted] of [[{ '-M': '0' }, /-M.*0/], [{ '-M': '' }, /-M/], [{ '-M': 'many' }, /many/], [{ '--gpus': '9' }, /9/],
    [{ options: '--til 64x64x64' }, /--til/], [{ options: '--tile 64x64x64 --json a.toml' }, /json/]]) {
    await answer({ ...good, ...change });
    const said = await browser.evaluate('document.querySelector(".failure")?.textContent ?? ""');
    expect(wanted.test(said) && !/internal error|failed/.test(said), `${JSON.stringify(change)}: says '${said}'`);
  }
}

async function checkStop() {
  await ask({ ...QUESTIONS[0], '-M': '16384', options: '' });
  await pause(50);
  await click('advise');
  await pause(300);
  await click('stop');
  await until(IDLE, 5, 'stopped');
  expect(await browser.evaluate('document.querySelector(".failure")?.textContent') === 'stopped', 'does not say that it was stopped');
  await answer({ ...QUESTIONS[1], options: '--selector defaults' });
  expect(await browser.evaluate('document.querySelector("h2") !== null'), 'answers nothing after it was stopped');
}

async function checkReport() {
  await click('report');
  await until('document.getElementById("report-link") !== null', 60, 'the report');
  const head = await browser.evaluate('fetch(document.getElementById("report-link").href).then((page) => page.text()).then((text) => text.slice(0, 200))');
  expect(/<!doctype html>/i.test(head), `the report begins with '${head}'`);
}

const work = mkdtempSync(join(tmpdir(), 'tritax-wasm-'));
try {
  const begin = performance.now();
  await browser.call('Page.navigate', { url: `${origin}/index.html` });
  await until('document.documentElement?.dataset.ready === "yes"', 60, 'ready');
  const sizes = ['tritax.wasm', 'tritax.js'].map((file) => `${file} ${(statSync(join(folder, file)).size / 1e6).toFixed(1)} MB`);
  console.log(`opens in ${((performance.now() - begin) / 1000).toFixed(1)} s; ${sizes.join(', ')}`);
  expect(await browser.evaluate('document.getElementById("workload").options.length') > 10, 'lists no workloads');
  await checkAnswers(work);
  await checkRefusals();
  await checkStop();
  await checkReport();
  await browser.call('Emulation.setDeviceMetricsOverride', { width: 400, height: 800, deviceScaleFactor: 1, mobile: false });
  await pause(200);
  const wide = await browser.evaluate('document.documentElement.scrollWidth');
  expect(wide <= 400, `is ${wide} px wide where 400 are there`);
} catch (error) {
  faults.push(error.message);
} finally {
  await browser.stop();
  server.close();
  rmSync(work, { recursive: true, force: true });
}
for (const fault of faults) console.log(`FAULT ${fault}`);
process.exit(faults.length > 0 ? 1 : 0);
