// Bundles src/ into one file for the page: `node bundle.mjs [FOLDER]`, dist beside this file if none is given.
// The licences of all that is in it stand at its head.
import { build } from 'esbuild';
import { existsSync, readFileSync, readdirSync, writeFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { digestOfSources } from './digest.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const folder = process.argv[2] ?? join(here, 'dist');

const result = await build({
  absWorkingDir: here,
  entryPoints: ['src/main.js'],
  bundle: true,
  minify: true,
  format: 'iife',
  target: 'es2020',
  charset: 'ascii',
  legalComments: 'none',
  loader: { '.css': 'text' },
  // Transforms that no figure of the page uses; see src/vega.js.
  alias: Object.fromEntries(['voronoi', 'force', 'hierarchy', 'wordcloud', 'crossfilter', 'regression', 'label', 'geo']
    .map((name) => [`vega-${name}`, './src/nothing.js'])),
  metafile: true,
  write: false,
});

// Packages whose code is in the bundle, by the text of their licence.
const packages = new Set();
for (const [file, { bytesInOutput }] of Object.entries(Object.values(result.metafile.outputs)[0].inputs)) {
  const match = file.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (match && bytesInOutput > 0) packages.add(match[1]);
}
const byText = new Map();
for (const name of [...packages].sort()) {
  const root = join(here, 'node_modules', name);
  const { version, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const file = readdirSync(root).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file && existsSync(join(root, file)) ? readFileSync(join(root, file), 'utf8').trim() : `License: ${license}`;
  byText.set(text, [...(byText.get(text) ?? []), `${name} ${version}`]);
}
let licences = '';
for (const [text, names] of byText) licences += `\n${names.join(', ')}\n\n${text.replaceAll('*/', '* /')}\n`;
licences = licences.replace(/[^\x00-\x7f]/g, (c) => (c === '\u00a9' ? '(c)' : c === '\u2019' ? "'" : '?'));

mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, 'bundle.js'), `/*! The page of tritax report; sources ${digestOfSources(here)}; with these packages:\n${licences}*/\n${result.outputFiles[0].text}`);
