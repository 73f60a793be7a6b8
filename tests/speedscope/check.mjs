// Whether speedscope, a reader of timelines by others, opens a trace of `tritax trace` and finds in it what stands there:
//
//   node check.mjs CHROMIUM SPEEDSCOPE TRACE.json        SPEEDSCOPE: its package's dist/release
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Browser } from '../report_page/browser.mjs';

const [program, release, traceFile] = process.argv.slice(2);
const trace = readFileSync(traceFile, 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'tritax-speedscope-'));
for (const file of readdirSync(release)) copyFileSync(join(release, file), join(folder, file));
// As its own command line hands over a file.
writeFileSync(join(folder, 'trace.js'), `speedscope.loadFileFromBase64('t.json', '${Buffer.from(trace).toString('base64')}')`);

const faults = [];
const browser = await Browser.start(program);
browser.handlers.push((method, params) => {
  if (method === 'Runtime.exceptionThrown') faults.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
  if (method === 'Runtime.consoleAPICalled' && params.type === 'error') faults.push(params.args.map((arg) => arg.value ?? arg.description).join(' '));
  if (method === 'Page.javascriptDialogOpening') {
    faults.push(params.message);
    browser.call('Page.handleJavaScriptDialog', { accept: true });
  }
});
await browser.call('Page.navigate', { url: `${pathToFileURL(join(folder, 'index.html')).href}#localProfilePath=${join(folder, 'trace.js')}` });
const begin = performance.now();
// One profile a track with operations; the bar at the top says "(1/281)" when the first is shown.
const bar = async () => (await browser.evaluate('document.body?.innerText ?? ""')).match(/\(\d+\/(\d+)\)[^\n]*/);
let shown = await bar();
while (faults.length === 0 && !shown && performance.now() - begin < 60_000) {
  await new Promise((wake) => setTimeout(wake, 100));
  shown = await bar();
}
const events = JSON.parse(trace).traceEvents.filter((event) => event.ph === 'X');
const tracks = new Set(events.map((event) => `${event.pid}/${event.tid}`)).size;
if (Number(shown?.[1]) !== tracks) faults.push(`it shows '${shown?.[0]}', and the trace has ${tracks} tracks with operations`);
await browser.stop();
rmSync(folder, { recursive: true, force: true });
for (const fault of faults) console.log(`FAULT ${fault}`);
console.log(`${shown?.[0]}: ${events.length} operations on ${tracks} tracks`);
process.exit(faults.length > 0 ? 1 : 0);
