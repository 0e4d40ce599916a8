// What the scripts of this folder share: the program with a home of its own, and Chromium. `cargo xtask` starts them.
//
// Every wait is for something that the page or the program shows; nothing sleeps.

import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const tools = createRequire(path.join(process.env.PAGE_TOOLS, 'package.json'));
const { chromium } = tools('playwright-core');
const axe = () => readFileSync(tools.resolve('axe-core/axe.min.js'), 'utf8');
const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];

export const program = process.env.PAGE_PROGRAM;
export const folder = process.env.PAGE_FOLDER; // the scratch folder, with `coffee` and `home` in it
const pictures = process.env.PAGE_PICTURES;
mkdirSync(pictures, { recursive: true });
export const picture = (name, form = 'png') => path.join(pictures, `${name}.${form}`);

export function must(is, what) {
  if (!is) throw new Error(what);
}

// The program

export function said(input, words, more = {}) {
  const where = { cwd: path.join(folder, 'coffee'), encoding: 'utf8', timeout: 120000, maxBuffer: 64 << 20, input, ...more };
  const ran = spawnSync(program, words, where);
  return { code: ran.status, out: ran.stdout, err: ran.stderr };
}

export const sluice = (...words) => said('', words);

export function answer(ran, words) {
  if (ran.code !== 0 && ran.code !== 10) throw new Error(`sluice ${words.join(' ')}: ${ran.code} ${ran.out}${ran.err}`.slice(0, 2000));
  return JSON.parse(ran.out);
}

export const json = (...words) => answer(said('', ['--json', ...words]), words);

export function recipe(name, steps, description = 'For the page') {
  const place = path.join(folder, 'coffee/.coven/grimoires');
  mkdirSync(place, { recursive: true });
  const head = Object.entries({ name, description, trigger: 'manual' });
  const lines = head.map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`);
  writeFileSync(path.join(place, `${name}.yml`), `${lines.join('')}steps:\n${steps}`);
}

export function task(branch, summary, script, workflow = 'default') {
  const context = `## Context\n\n\`\`\`demo\n${script}\n\`\`\`\n`;
  return json('task', 'create', branch, summary, '--harness', 'demo', '--workflow', workflow, '--context', context).task.id;
}

// A task whose work waits for a person's review.
export function reviewed(branch, summary, work) {
  const id = task(branch, summary, `worker: ${work}; work\nreviewer: review pass`, 'reviewed');
  const ran = sluice('task', 'wait', id, '--status', 'reviewing');
  must(ran.code === 0, `${branch} does not come to its review: ${ran.code} ${ran.err}`);
  return id;
}

// A run that stands at a gate.
export function held(name, ...more) {
  const id = json('start', name, '--detach', ...more).run.id;
  const ran = sluice('run', 'wait', id);
  must(ran.code === 10, `${name} is not held: ${ran.code} ${ran.err}`);
  return id;
}

export function fifo(name) {
  const file = path.join(folder, name);
  must(spawnSync('mkfifo', [file]).status === 0, 'mkfifo');
  return { file, open: () => closeSync(openSync(file, 'w')) };
}

export const enginePid = () => Number(readFileSync(path.join(folder, 'home/engine.lock'), 'utf8').split(/\s/)[0]);

// The browser

export const browser = await chromium.launch({ executablePath: process.env.PAGE_CHROMIUM, args: flags });
export const requested = new Set(), ours = new Set(), complaints = [];

// A window with cookies of its own.
export async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.on('request', (request) => requested.add(new URL(request.url()).origin));
  context.on('page', (page) => {
    page.on('console', (message) => { if (message.type() === 'error') complaints.push(message.text()); });
    page.on('pageerror', (error) => complaints.push(String(error)));
  });
  return context;
}

export async function login(context, more = [], env = process.env) {
  const words = ['--json', 'open', ...more];
  const link = answer(said('', words, { env }), words).page.url;
  const page = await context.newPage();
  await page.goto(link);
  await page.waitForURL((url) => url.pathname === '/');
  await page.waitForSelector('#board');
  const origin = new URL(link).origin;
  ours.add(origin);
  return { page, origin, link };
}

// A page that was loaded again has forgotten this.
export const mark = (page) => page.evaluate(() => { window.marked = true; });
export const still = async (page) => must(await page.evaluate(() => window.marked === true), 'the page was loaded again');

// What axe finds serious on a page.
export async function serious(seen) {
  await seen.evaluate(axe());
  const found = await seen.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ['violations'] })).violations);
  return found.filter((it) => ['serious', 'critical'].includes(it.impact));
}
