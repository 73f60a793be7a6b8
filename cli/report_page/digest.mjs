// A digest of what the bundle is made from, which stands at its head: whether the committed one is today's.
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

export function digestOfSources(folder) {
  const hash = createHash('sha256');
  const files = ['bundle.mjs', 'package-lock.json', ...readdirSync(join(folder, 'src')).sort().map((name) => join('src', name))];
  for (const file of files) hash.update(`${file}\n`).update(readFileSync(join(folder, file))).update('\n');
  return hash.digest('hex');
}
