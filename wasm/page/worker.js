// The program, beside the page, so that the page stays alive while it works. Takes {id, words, files, results}: its command
// line, files to put there first ({path, text}), and paths of files to give back; answers {id, code, output, errors,
// results, seconds}.
importScripts('tritax.js');

let printed = [];
let told = [];
// Byte by byte, since what takes lines is a terminal to the program, on which it would draw how far it is.
const start = () => createTritax({ stdout: (byte) => printed.push(byte), stderr: (byte) => told.push(byte) });
const textOf = (bytes) => new TextDecoder().decode(Uint8Array.from(bytes)).trimEnd();
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
  let failure = '';
  const answer = { id, code: 1, output: '', errors: '', results: {}, seconds: 0 };
  try {
    const tritax = await program;
    for (const { path, text } of files) tritax.FS.writeFile(path, text);
    const begin = performance.now();
    answer.code = tritax.callMain(words);
    answer.seconds = (performance.now() - begin) / 1000;
    for (const path of results) answer.results[path] = take(tritax, path);
  } catch (error) {
    failure = /memory/i.test(error.message)
      ? 'out of memory; give a smaller problem or larger tiles' : `the program failed: ${error.message}`;
    program = start(); // what is left of the old one is not to be trusted
  }
  answer.output = textOf(printed);
  answer.errors = failure || textOf(told);
  self.postMessage(answer);
};
