// Whether every source of the page, and of that of wasm/, parses, and whether the committed bundle is made from these sources.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const folder = join(here, '..', '..', 'cli', 'report_page');
const { digestOfSources } = await import(join(folder, 'digest.mjs'));

let faults = 0;
const files = [...readdirSync(join(folder, 'src')).map((name) => join(folder, 'src', name)), join(folder, 'bundle.mjs'),
  ...[here, join(here, '..', 'wasm'), join(here, '..', '..', 'wasm', 'page')].flatMap((place) => readdirSync(place)
    .filter((name) => /\.m?js$/.test(name)).map((name) => join(place, name)))];
for (const file of files) {
  try {
    execFileSync(process.execPath, ['--input-type=module', '--check'], { input: readFileSync(file), stdio: ['pipe', 'ignore', 'pipe'] });
  } catch (error) {
    ++faults;
    console.log(`${file}: ${error.stderr}`);
  }
}
const head = readFileSync(join(folder, 'dist', 'bundle.js'), 'utf8').slice(0, 300);
if (!head.includes(digestOfSources(folder))) {
  ++faults;
  console.log('cli/report_page/dist/bundle.js is not made from these sources: configure with -DTRITAX_REPORT_BUNDLE=ON');
}
console.log(`${files.length} sources`);
process.exit(faults > 0 ? 1 : 0);
