// Chromium without a window, driven over a pipe by its debugging protocol
// (https://chromedevtools.github.io/devtools-protocol/), so that the test needs no package but the browser.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class Browser {
  static async start(program) {
    const browser = new Browser();
    browser.folder = mkdtempSync(join(tmpdir(), 'tritax-browser-'));
    browser.process = spawn(program, ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars',
      '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--remote-debugging-pipe',
      `--user-data-dir=${browser.folder}`, 'about:blank'],
    { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
    browser.waiting = new Map();
    browser.handlers = [];
    browser.last = 0;
    let rest = '';
    browser.process.stdio[4].setEncoding('utf8');
    browser.process.stdio[4].on('data', (text) => {
      const messages = (rest + text).split('\0');
      rest = messages.pop();
      for (const message of messages) browser.receive(JSON.parse(message));
    });
    browser.process.on('exit', () => {
      for (const { reject } of browser.waiting.values()) reject(new Error(`${program} ended`));
    });
    const { targetId } = await browser.call('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await browser.call('Target.attachToTarget', { targetId, flatten: true });
    browser.session = sessionId;
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await browser.call(`${domain}.enable`);
    return browser;
  }

  receive(message) {
    if (message.id === undefined) {
      for (const handler of this.handlers) handler(message.method, message.params);
      return;
    }
    const { resolve, reject } = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (message.error) reject(new Error(message.error.message));
    else resolve(message.result);
  }

  call(method, params = {}) {
    const id = ++this.last;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId: this.session })}\0`);
    });
  }

  // The value of an expression in the page; a promise is awaited.
  async evaluate(expression) {
    const { result, exceptionDetails } = await this.call('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  async stop() {
    this.process.removeAllListeners('exit');
    const ended = new Promise((resolve) => this.process.once('exit', resolve));
    this.session = undefined;
    this.call('Browser.close').catch(() => {});
    const late = setTimeout(() => this.process.kill('SIGKILL'), 5000);
    await ended;
    clearTimeout(late);
    // Its other processes may write there for a moment longer.
    for (let attempt = 0; attempt < 50; ++attempt) {
      try {
        rmSync(this.folder, { recursive: true, force: true });
        return;
      } catch {
        await new Promise((wake) => setTimeout(wake, 100));
      }
    }
  }
}
