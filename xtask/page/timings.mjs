// How long the page takes with many tasks and a long run, and what it costs: `cargo xtask bench page` starts it. It asserts no
// time; what must hold is that everything comes to its end. The aims stand beside the numbers.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { cpus, loadavg } from 'node:os';
import path from 'node:path';
import { browser, enginePid, folder, held, json, login, must, open, recipe } from './scene.mjs';

const [TASKS, STEPS, PAGES, SECONDS] = (process.env.PAGE_COUNTS || '5000,1000,100,15').split(',').map(Number);
const PAINTS = 7, UPDATES = 25; // how often a page is painted, and how many updates are watched
const PARTS = 'inbox,board';
const PAUSE = 250; // milliseconds between two requests for parts, as the page's module has it

const agent = new Agent({ keepAlive: true, maxSockets: 8 });
const socketPath = path.join(folder, 'home/engine.sock');
const ticks = Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout);
const pause = (millis) => new Promise((done) => setTimeout(done, millis));

function asked(options, body) {
  return new Promise((resolve, reject) => {
    const sent = request(options, (answer) => {
      const parts = [];
      answer.on('data', (part) => parts.push(part)).on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, text: Buffer.concat(parts).toString() }));
    });
    sent.on('error', reject).end(body);
  });
}

async function post(address, body) {
  const options = { socketPath, agent, method: 'POST', path: address, headers: { 'Content-Type': 'application/json' } };
  const answer = await asked(options, JSON.stringify(body));
  must(answer.status < 300, `${address}: ${answer.status} ${answer.text.slice(0, 300)}`);
  return JSON.parse(answer.text);
}

const create = async (branch, summary) => (await post('/v1/lifecycle/tasks', { project: 'coffee', branch, summary, no_spawn: true })).task.id;

// Numbers

function quantile(all, part) {
  const sorted = [...all].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
}
const millis = (all) => `${quantile(all, .5).toFixed(0)} ms (95th: ${quantile(all, .95).toFixed(0)} ms)`;
const row = (what, value, aim) => console.log(`${what.padEnd(66)} ${value.padStart(26)}   ${aim}`);

// Seconds of a processor that a process has used.
function used(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticks;
}

async function share(measure, during = () => pause(SECONDS * 1000)) {
  const [before, began] = [await measure(), Date.now()];
  await during();
  return (100 * (await measure() - before)) / ((Date.now() - began) / 1000);
}

const percent = (value) => `${value.toFixed(2)} % of a core`;

// What is looked at

console.log(`${TASKS} tasks, a run of ${STEPS} steps, ${cpus().length} cores, load ${loadavg()[0].toFixed(1)} before`);
// It starts the engine, and opens its port.
const { page, origin } = await login(await open());
const began = Date.now();
for (let made = 0; made < TASKS; made += 8) {
  await Promise.all([...Array(Math.min(8, TASKS - made)).keys()].map((place) => create(`t${made + place}`, `Task ${made + place} of many`)));
}
row(`${TASKS} tasks are made`, `${((Date.now() - began) / 1000).toFixed(1)} s`, '');
// Ten steps beside each other, each with one before it; the last waits for a person.
const line = (step) => `  - {name: s${step}, type: script, command: 'true'${step >= 10 ? `, needs: [s${step - 10}]` : ''}}\n`;
const steps = [...Array(STEPS - 1).keys()].map(line).join('');
recipe('long', `${steps}  - {name: last, type: gate, command: 'false', message: May it pass?, needs: [s${STEPS - 2}]}\n`);
const started = Date.now();
const run = held('long');
row(`a run of ${STEPS} steps comes to its gate`, `${((Date.now() - started) / 1000).toFixed(1)} s`, '');

async function paints(address) {
  const first = [], whole = [];
  let size, sent;
  for (let turn = 0; turn < PAINTS; turn += 1) {
    await page.goto(origin + address, { waitUntil: 'load' });
    const [paint, load, ...sizes] = await page.evaluate(() => new Promise((resolve) => {
      const { loadEventEnd, decodedBodySize, transferSize } = performance.getEntriesByType('navigation')[0];
      const tell = (entry) => resolve([entry.startTime, loadEventEnd, decodedBodySize, transferSize]);
      new PerformanceObserver((list) => list.getEntriesByName('first-contentful-paint').forEach(tell)).observe({ type: 'paint', buffered: true });
    }));
    first.push(paint);
    whole.push(load);
    [size, sent] = sizes;
  }
  row(`first paint of ${address.replace(run, 'ID')}`, millis(first), 'under 1000 ms');
  row(`  the whole page, ${(size / 1024).toFixed(0)} KiB, ${(sent / 1024).toFixed(0)} KiB as it is sent`, millis(whole), '');
}
await paints('/');
await paints('/?view=columns');
await paints(`/runs/${run}`);
await paints(`/runs/${run}?step=s1`);

// From an event, by its own time, until the window has painted it.
async function updates() {
  const all = [];
  await page.goto(`${origin}/?q=visible`);
  await page.evaluate(() => {
    window.seen = new Map();
    new MutationObserver(() => {
      for (const it of document.querySelectorAll('#board li[id]')) {
        if (!window.seen.has(it.id)) window.seen.set(it.id, new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(Date.now())))));
      }
    }).observe(document.getElementById('main'), { childList: true, subtree: true });
  });
  for (let turn = 0; turn < UPDATES; turn += 1) {
    const { task } = await post('/v1/lifecycle/tasks', { project: 'coffee', branch: `visible${turn}`, summary: 'visible', no_spawn: true });
    await page.waitForFunction((id) => window.seen.has(id), `row-task-${task.id}`);
    all.push(await page.evaluate((id) => window.seen.get(id), `row-task-${task.id}`) - Date.parse(task.created_at));
    // As people do: the next one comes when the page is at rest again.
    await pause(2 * PAUSE);
  }
  return all;
}
row('from an event until it is visible', millis(await updates()), 'under 200 ms');

// What it costs

const inside = await browser.newBrowserCDPSession();
async function renderers() {
  const { processInfo } = await inside.send('SystemInfo.getProcessInfo');
  return processInfo.filter((it) => it.type === 'renderer').reduce((sum, it) => sum + it.cpuTime, 0);
}
const engine = enginePid();
for (const [name, address] of [['/', '/'], ['the run', `/runs/${run}`]]) {
  await page.goto(origin + address, { waitUntil: 'load' });
  await pause(2000);
  row(`an idle page: ${name}`, percent(await share(renderers)), 'under 1 %');
}
await page.goto('about:blank');
row('the engine without a page', percent(await share(() => used(engine))), '');

// Pages without a browser: each follows hints, and asks for its parts as the page's module does.
const cookies = [];
async function session() {
  const link = new URL(json('open').page.url);
  const host = { host: '127.0.0.1', port: link.port, headers: { host: link.host, accept: 'text/html' } };
  const answer = await asked({ ...host, path: link.pathname + link.search });
  const cookie = answer.headers['set-cookie'][0].split(';')[0];
  cookies.push(cookie);
  return { ...host, headers: { ...host.headers, cookie } };
}

class OpenPage {
  constructor(host) {
    Object.assign(this, { host, hints: 0, fetched: 0, bytes: 0, last: 0 });
  }

  follow() {
    return new Promise((resolve, reject) => {
      const sent = request({ ...this.host, path: '/page/hints', agent: false }, (answer) => {
        if (answer.statusCode !== 200) return reject(new Error(`hints: ${answer.statusCode}`));
        resolve();
        answer.on('data', (part) => { if (String(part).includes('data:')) this.hinted(); });
      });
      sent.on('error', () => {}).end();
      this.sent = sent;
    });
  }

  hinted() {
    this.hints += 1;
    if (this.timer) return;
    this.timer = setTimeout(async () => {
      const answer = await asked({ ...this.host, path: `/?part=${PARTS}`, agent });
      must(answer.status === 200, `a part: ${answer.status} ${answer.text.slice(0, 200)}`);
      [this.timer, this.last] = [0, Date.now()];
      this.fetched += 1;
      this.bytes += answer.text.length;
    }, Math.max(0, this.last + PAUSE - Date.now()));
  }
}

// A session has its share of the followers, so there are several people.
const people = [];
for (let person = 0; person < Math.ceil(PAGES / 10); person += 1) people.push(await session());
const pages = [...Array(PAGES).keys()].map((place) => new OpenPage(people[Math.floor(place / 10)]));
await Promise.all(pages.map((it) => it.follow()));
await pause(2000);
row(`the engine with ${PAGES} open pages, nothing happens`, percent(await share(() => used(engine))), 'under 10 %');
let number = 0;
const busy = async () => {
  for (let second = 0; second < SECONDS; second += 1) {
    await create(`busy${number += 1}`, 'Something happens');
    await pause(1000);
  }
};
const before = pages.reduce((sum, it) => sum + it.fetched, 0);
const cost = await share(() => used(engine), busy);
const fetched = pages.reduce((sum, it) => sum + it.fetched, 0) - before;
row(`the engine with ${PAGES} open pages, a new task each second`, percent(cost), '');
row('  parts that the pages asked for', `${(fetched / SECONDS).toFixed(0)} a second`, '');
must(PAGES === 0 || fetched > 0, 'the pages follow nothing');
pages.forEach((it) => it.sent.destroy());
console.log(`load ${loadavg()[0].toFixed(1)} after`);
process.exit(0);
