// Whether a page of `tritax report` opens, says what its data says, and is quick:
//
//   node check.mjs CHROMIUM PAGE.html [RESULT.json] [--pictures FOLDER] [--slack FACTOR]
//
// RESULT.json is what --json of the same command wrote. The aims are 3 s to open and 30 frames a second; --slack
// multiplies the time that may be taken, for machines with other work.
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Browser } from './browser.mjs';

const words = process.argv.slice(2);
const option = (name) => {
  const at = words.indexOf(name);
  return at < 0 ? undefined : words.splice(at, 2)[1];
};
const pictures = option('--pictures');
const slack = Number(option('--slack') ?? 1);
const [program, page, resultFile] = words;

const faults = [];
const expect = (condition, text) => { if (!condition) faults.push(text); };
const browser = await Browser.start(program);
browser.handlers.push((method, params) => {
  if (method === 'Runtime.exceptionThrown') faults.push(`exception: ${params.exceptionDetails.exception?.description ?? params.exceptionDetails.text}`);
  if (method === 'Runtime.consoleAPICalled' && ['error', 'warning', 'assert'].includes(params.type)) {
    faults.push(`console ${params.type}: ${params.args.map((arg) => arg.value ?? arg.description).join(' ')}`);
  }
  if (method === 'Log.entryAdded' && ['error', 'warning'].includes(params.entry.level)) faults.push(`log: ${params.entry.text}`);
  if (method === 'Network.requestWillBeSent' && !/^(file|data|blob|about):/.test(params.request.url)) faults.push(`asks the network: ${params.request.url}`);
});

async function size(width, height) {
  await browser.call('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
}

async function open() {
  const begin = performance.now();
  await browser.call('Page.navigate', { url: pathToFileURL(resolve(page)).href });
  while (await browser.evaluate('document.documentElement?.dataset.ready ?? ""') !== 'yes') {
    if (performance.now() - begin > 30_000) throw new Error(`not ready after 30 s; ${faults.join('; ')}`);
    await new Promise((wake) => setTimeout(wake, 20));
  }
  return (performance.now() - begin) / 1000;
}

async function picture(name, selector) {
  if (!pictures || (selector && !await browser.evaluate(`document.querySelector('${selector}') !== null`))) return;
  const clip = selector ? await browser.evaluate(`(() => { const box = document.querySelector('${selector}').getBoundingClientRect();
    return { x: box.left + scrollX, y: box.top + scrollY, width: box.width, height: box.height, scale: 1 }; })()`) : undefined;
  const { data } = await browser.call('Page.captureScreenshot', { format: 'png', captureBeyondViewport: true, ...(clip ? { clip } : {}) });
  writeFileSync(join(pictures, `${name}.png`), Buffer.from(data, 'base64'));
}

async function whole(name) {
  if (!pictures) return;
  const { cssContentSize } = await browser.call('Page.getLayoutMetrics');
  const { data } = await browser.call('Page.captureScreenshot', { format: 'png', captureBeyondViewport: true,
    clip: { x: 0, y: 0, width: cssContentSize.width, height: Math.min(cssContentSize.height, 9000), scale: 1 } });
  writeFileSync(join(pictures, `${name}.png`), Buffer.from(data, 'base64'));
}

// Every number that the page shows with its place in the data is that number, rounded.
async function checkNumbers() {
  const shown = await browser.evaluate(`[...document.querySelectorAll('[data-path]')].map((node) =>
    ({ text: node.textContent, path: node.dataset.path, digits: +node.dataset.digits, scale: +node.dataset.scale }))`);
  expect(shown.length > 0, 'no number of the page says where it stands in the data');
  const data = await browser.evaluate('JSON.parse(document.getElementById("data").textContent)');
  for (const { text, path, digits, scale } of shown) {
    const value = path.split('.').reduce((node, key) => node?.[key], data);
    if (typeof value !== 'number') {
      expect(text === '–', `${path}: shows '${text}' for ${value}`);
      continue;
    }
    const read = Number(text.replaceAll(',', ''));
    expect(Math.abs(read - value * scale) <= 0.5000001 * 10 ** -digits, `${path}: shows '${text}' for ${value * scale}`);
  }
  if (resultFile) {
    const wanted = JSON.parse(readFileSync(resultFile, 'utf8'));
    for (const [key, value] of Object.entries(wanted)) {
      expect(JSON.stringify(data.result[key]) === JSON.stringify(value), `result.${key} is not what --json says`);
    }
  }
  return shown.length;
}

// Zooms in and out for a second and a half: frames a second, and what drawing one costs.
async function checkSpeed() {
  if (!await browser.evaluate('tritax.view !== null')) return null;
  const speed = await browser.evaluate(`new Promise((done) => {
    const view = tritax.view;
    const draw = view.draw.bind(view);
    const costs = [];
    view.draw = () => { const begin = performance.now(); draw(); costs.push(performance.now() - begin); };
    for (const row of view.rows) if (row.kind === 'gpu' && !row.isOpen) view.open.add(row.key);
    view.arrange();
    const begin = performance.now();
    let frames = 0;
    const next = () => {
      const now = performance.now();
      if (now - begin > 1500) {
        costs.sort((a, b) => a - b);
        view.draw = draw;
        view.fit();
        done({ frames: frames / (now - begin) * 1000, draw_ms: costs[Math.floor(costs.length / 2)], worst_ms: costs[costs.length - 1] });
        return;
      }
      ++frames;
      view.zoom(Math.floor((now - begin) / 500) % 2 === 0 ? 0.93 : 1.07, view.timeline.end * 0.4);
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  })`);
  expect(speed.draw_ms < 33 * slack, `a frame of the timeline takes ${speed.draw_ms.toFixed(1)} ms, more than 33 (times ${slack})`);
  expect(speed.frames > 30 / slack, `${speed.frames.toFixed(1)} frames a second, not 30 (over ${slack})`);
  return speed;
}

// Keys move the view and choose steps of the critical path.
async function checkKeys() {
  if (!await browser.evaluate('tritax.view !== null && tritax.view.timeline.path.begin.length > 0')) return;
  await browser.evaluate('document.querySelector("canvas[role=application]").focus()');
  const press = async (key, code = key) => {
    await browser.call('Input.dispatchKeyEvent', { type: 'keyDown', key, code, text: key.length === 1 ? key : undefined });
    await browser.call('Input.dispatchKeyEvent', { type: 'keyUp', key, code });
  };
  const state = () => browser.evaluate('({ from: tritax.view.from, to: tritax.view.to, open: tritax.view.open.size, detail: document.querySelector(".detail").textContent })');
  const before = await state();
  await press('+');
  const zoomed = await state();
  expect(zoomed.to - zoomed.from < before.to - before.from, 'the key + does not zoom in');
  await press('ArrowRight');
  expect((await state()).from > zoomed.from, 'the key → does not pan');
  await press('0');
  expect((await state()).to === before.to, 'the key 0 does not show all');
  await press('Enter');
  expect((await state()).open !== before.open, 'the key Enter does not open or close a row');
  await press(']');
  expect((await state()).detail.includes('on the critical path'), 'the key ] does not choose a step of the critical path');
}

let told = '';
try {
  await size(1200, 900);
  const seconds = await open();
  expect(seconds < 3 * slack, `opens in ${seconds.toFixed(2)} s, more than 3 (times ${slack})`);
  const operations = await browser.evaluate('tritax.view?.timeline.operations_shown ?? 0');
  const numbers = await checkNumbers();
  await whole('light');
  await picture('timeline', '.timeline');
  const speed = await checkSpeed();
  await checkKeys();
  await browser.call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: 'dark' }] });
  await browser.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
  expect(await browser.evaluate('getComputedStyle(document.body).backgroundColor') !== 'rgb(255, 255, 255)', 'stays light where dark is preferred');
  await whole('dark');
  await picture('timeline-dark', '.timeline');
  await browser.call('Emulation.setEmulatedMedia', { features: [] });
  await size(400, 800);
  let wide = 0;
  for (const begin = performance.now(); performance.now() - begin < 3000;) {
    wide = await browser.evaluate('document.documentElement.scrollWidth');
    if (wide <= 400) break;
    await new Promise((wake) => setTimeout(wake, 50));
  }
  expect(wide <= 400, `is ${wide} px wide where 400 are there`);
  await whole('narrow');
  await picture('narrow-timeline', '.timeline');
  told = `${operations} operations, opens in ${seconds.toFixed(2)} s, ${numbers} numbers are those of its data`;
  if (speed) told += `, ${speed.frames.toFixed(0)} frames a second while zooming, ${speed.draw_ms.toFixed(1)} ms each (worst ${speed.worst_ms.toFixed(1)})`;
} catch (error) {
  faults.push(error.message);
} finally {
  await browser.stop();
}
for (const fault of faults) console.log(`FAULT ${fault}`);
console.log(told);
process.exit(faults.length > 0 ? 1 : 0);
