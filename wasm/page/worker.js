// The program, beside the page, so that the page stays alive while it works. Takes {id, words, files, results}: its command
// line, files to put there first ({path, text}), and paths of files to give back; answers {id, code, output, errors,
// results, seconds}.
importScripts('tritax.js');

let printed = [];
let told = [];
const start = () => createTritax({ print: (line) => printed.push(line), printErr: (line) => told.push(line) });
let program = start();

function take(tritax, path) {
  try {
    const text = tritax.FS.readFile(path, { encoding: 'utf8' });
    tritax.FS.unlink(path);
    return text;
  } catch {
    return null; // it was not written
  }
}

self.onmessage = async ({ data: { id, words, files = [], results = [] } }) => {
  printed = [];
  told = [];
  const answer = { id, code: 1, output: '', errors: '', results: {}, seconds: 0 };
  try {
    const tritax = await program;
    for (const { path, text } of files) tritax.FS.writeFile(path, text);
    const begin = performance.now();
    answer.code = tritax.callMain(words);
    answer.seconds = (performance.now() - begin) / 1000;
    for (const path of results) answer.results[path] = take(tritax, path);
  } catch (error) {
    told.push(/memory/i.test(error.message)
      ? 'out of memory; give a smaller problem or larger tiles' : `the program failed: ${error.message}`);
    program = start(); // what is left of the old one is not to be trusted
  }
  answer.output = printed.join('\n');
  answer.errors = told.join('\n');
  self.postMessage(answer);
};
