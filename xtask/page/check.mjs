// Drives the page in Chromium as people do: `cargo xtask page-test` starts it with a home of its own.
//
// Every wait is for something that the page shows; nothing sleeps. Each part prints one line when it has held.

import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import path from 'node:path';
import { browser, complaints, enginePid, fifo, folder, held, json, login, mark, must, open, ours, picture, program, recipe, requested,
  reviewed, said, serious, sluice, still } from './scene.mjs';
import { hostile } from './hostile.mjs';
import { usualDay } from './usual_day.mjs';

const PAGES = ['/', '/?view=columns', '/workflows', '/workflows?project=coffee', '/workflows/default', '/workflows/gated?project=coffee',
  '/workers', '/workspaces', '/costs', '/events', '/settings', '/tasks/none', '/page/login'];
const SKIP = { hasText: /skip/i };
const began = Date.now();
const holds = (what) => console.log(`page: ${what} (${Math.round((Date.now() - began) / 1000)} s)`);

// A part of the page is asked for again and put in: by an event, as if the part were about everything.
let events = 0;
async function replaced(seen, part) {
  await seen.evaluate((id) => Object.assign(document.getElementById(id).dataset, { live: '*', old: '' }), part);
  json('task', 'create', `event${events += 1}`, 'Something happens', '--no-spawn');
  await seen.waitForFunction((id) => !('old' in document.getElementById(id).dataset), part);
}

const office = await open();
let { page, origin, link } = await login(office);
holds('logged in by link');

const stranger = await (await open()).newPage();
await stranger.goto(link);
must(await stranger.getByText('used before').count() === 1, 'the link opens twice');
await stranger.context().close();
holds('the link opens once');

const { latte } = usualDay();

// A task moves without a reload, and rows do not move under the cursor.
await page.goto(`${origin}/`);
await page.waitForSelector('#board');
await mark(page);
const pair = [];
for (const [branch, summary] of [['filter', 'Finer paper'], ['mocha', 'More cocoa']]) {
  pair.push(json('task', 'create', branch, summary, '--no-spawn').task.id);
  await page.waitForSelector(`#row-task-${pair.at(-1)}`);
}
const top = async (id) => (await page.locator(`#row-task-${id}`).boundingBox()).y;
// The pointer is on the lower of the two while the upper one leaves: without care it would move up.
const [upper, first] = await top(pair[0]) < await top(pair[1]) ? pair : pair.toReversed();
await page.hover(`#row-task-${first}`);
const before = await top(first);
json('task', 'cancel', upper, '--yes');
await page.waitForSelector('.rows .gone');
must(await top(first) === before, `the row moved under the cursor: ${before} ${await top(first)}`);
await page.mouse.move(0, 0);
await page.waitForFunction((id) => document.querySelector(`#group-done #row-task-${id}`) && !document.querySelector('.rows .gone'), upper);
must(await top(first) < before, 'the row above did not leave: the check shows nothing');
await still(page);
holds('a task appears and moves without a reload, and no row moves under the cursor');

// A run's graph; a gate is answered in one window, and the other sees it.
recipe('gated', "  - {name: build, type: script, command: 'echo built'}\n" +
  "  - {name: check, type: gate, command: 'echo three tests fail; false', message: May it pass?}\n  - {name: after, type: script, command: 'true'}\n");
const gated = held('gated');
const other = await office.newPage();
await other.goto(`${origin}/`);
await other.waitForSelector(`.card h3 a[href="/runs/${gated}"]`);
await mark(other);
await page.goto(`${origin}/runs/${gated}`);
await page.waitForSelector('.graph .node.held');
must(await page.getByText('three tests fail').count() > 0, 'the last lines are not shown');
await mark(page);
// What is typed into the card outlives its nodes: something new stands above it, so it is put in anew.
await page.locator('.card details.message summary').click();
await page.locator('.card textarea').fill('Because of the flask');
await page.evaluate(() => document.querySelector('#facts .card').before(document.createElement('p')));
await replaced(page, 'facts');
must(await page.locator('.card textarea').inputValue() === 'Because of the flask', 'an answer that was typed is lost');
await page.locator('.card button', SKIP).click();
await page.waitForSelector('.run-completed');
must(JSON.stringify(json('events', '--type', 'workflow.answered', '--correlation', gated)).includes('Because of the flask'),
  'the message is not sent with the answer');
await page.waitForSelector('.graph .node.completed');
await still(page);
await other.waitForFunction((id) => !document.querySelector(`.card h3 a[href="/runs/${id}"]`), gated);
await still(other);
await other.close();
holds('a gate is answered on the run page; the graph and the other window follow');

// Two windows answer at once: one answer is taken, and the other window says so and then shows how it stands.
const twice = held('gated');
const rival = await (await open()).newPage();
let release;
const late = new Promise((resolve) => { release = resolve; });
await rival.goto((await login(rival.context())).origin + `/runs/${twice}`);
await rival.waitForSelector('.card');
await mark(rival);
await rival.route((url) => url.searchParams.has('part'), async (route) => { await late; await route.continue(); });
await page.goto(`${origin}/runs/${twice}`);
await page.locator('.card button', SKIP).click();
await page.waitForSelector('.run-completed');
await rival.locator('.card button', SKIP).click();
await rival.waitForSelector('#said.refused');
release();
await rival.waitForSelector('.run-completed');
must(await rival.locator('.card').count() === 0, 'the question stays');
await still(rival);
const answers = sluice('events', '--json', '--type', 'workflow.answered', '--correlation', twice).out.trim().split('\n');
must(answers.length === 1, `answered ${answers.length} times`);
await rival.context().close();
holds('of two windows that answer at once one is refused, and both show the end');

// A log is followed, and the run is cancelled.
const go = fifo('go'), never = fifo('never');
recipe('slow', `  - {name: talk, type: agent, prompt: 'demo: say first line; wait for ${go.file}; say second line; wait for ${never.file}'}\n`);
const slow = json('start', 'slow', '--detach').run.id;
await page.goto(`${origin}/runs/${slow}?step=talk`);
await page.waitForFunction(() => document.querySelector('#step-log pre')?.textContent.includes('first line'));
await mark(page);
go.open();
await page.waitForFunction(() => document.querySelector('#step-log pre')?.textContent.includes('second line'));
await still(page);
holds('a log is followed');
await page.locator('#do-cancel summary').click();
await page.getByRole('button', { name: 'Cancel the run' }).click();
await page.waitForSelector('.run-cancelled');
await still(page);
holds('a run is cancelled');

// Files are marked as viewed until they change, and a comment that is not sent outlives the window.
const brew = reviewed('brew', 'Brew it', 'edit brew.txt four five six; edit tea.txt green');
const changes = `${origin}/tasks/${brew}?tab=changes`;
const file = (name) => page.locator('.kept', { has: page.locator('summary code', { hasText: name }) }).last();
const viewed = async (name) => [await file(name).locator('.viewed input').isChecked(), await file(name).locator('details').evaluate((it) => it.open)];
const uncommitted = path.join(json('task', 'show', brew).task.workspace, 'brew.txt');
writeFileSync(uncommitted, 'not committed');
await page.goto(changes);
for (const name of ['brew.txt', 'tea.txt']) await file(name).locator('.viewed input').check();
must(String(await viewed('tea.txt')) === 'true,false', 'a viewed file is not folded');
must(await page.locator('.tree a.seen').count() >= 2, 'the tree does not show what was viewed');
await page.screenshot({ path: picture('task-viewed') });
writeFileSync(uncommitted, 'changed again');
await page.reload();
must(String(await viewed('tea.txt')) === 'true,false', 'a mark does not outlive the window');
must(String(await viewed('brew.txt')) === 'false,true', 'a file that has changed is still viewed');
await file('tea.txt').locator('.viewed input').uncheck();
must(String(await viewed('tea.txt')) === 'false,true', 'a mark cannot be taken back');
holds('files are marked as viewed until they change');

await page.locator('tr.added td.no a').last().click();
await page.locator('tr.comment textarea').fill('Not this one');
await page.locator('tr.comment [data-drop]').click();
await page.locator('tr.added td.no a').first().click();
await page.locator('tr.comment textarea').fill('Rename this, please');
await page.locator('#review textarea[name=message]').fill('Almost there');
const drafts = () => page.locator('#review textarea').evaluateAll((all) => all.map((it) => it.value).join('|'));
await replaced(page, 'tab');
must(await drafts() === 'Rename this, please|Almost there', `when its part is put in anew the draft is ${await drafts()}`);
await page.close();
page = await office.newPage();
await page.goto(changes);
must(await drafts() === 'Rename this, please|Almost there', `the draft is ${await drafts()}`);
holds('a draft of comments outlives the window');

// Changes are requested with a comment at a line.
await mark(page);
await page.screenshot({ path: picture('task-comment') });
await page.locator('#review button.primary').click();
await page.waitForSelector('.said');
await still(page);
// Its agents may have brought it back here by now.
const moves = json('task', 'history', brew).events.filter((it) => it.type === 'status.changed').map((it) => `${it.data.from} → ${it.data.to}`);
must(moves.includes('reviewing → working'), `the task is not sent back: ${moves.join(', ')}`);
await page.goto(`${origin}/tasks/${brew}?tab=file`);
await page.waitForFunction(() => document.querySelector('.prose')?.textContent.includes('Rename this, please'));
must((await page.locator('.prose').textContent()).includes('Almost there'), 'the message is not in TASK.md');
must(/line \d+ \((committed|not committed|since the last verdict)\): Rename/.test(await page.locator('.prose').textContent()), 'the comment does not say in which part its line is');
must(!(await page.evaluate(() => localStorage.getItem('sluice'))).includes('Rename'), 'a draft stays that was sent');
holds('changes are requested with a comment at a line');

// A filter is saved as a view, opened by its number, shown in the dashboard too, and forgotten.
await page.goto(`${origin}/?q=latte&group=needs_you&group=ready_to_merge`);
await page.locator('#save-view summary').click();
await page.locator('#view-name').fill('<b>mine</b>');
await page.locator('#save-view button').click();
await page.waitForSelector('#views a[aria-current]');
const saved = JSON.parse(readFileSync(path.join(folder, 'home/views.json'), 'utf8')).views;
must(saved.length === 1 && saved[0].name === '<b>mine</b>' && saved[0].groups.length === 2, `the view is ${JSON.stringify(saved)}`);
await page.goto(`${origin}/`);
await page.keyboard.press('1');
await page.waitForURL((url) => url.searchParams.getAll('group').length === 2 && url.searchParams.get('q') === 'latte');
await page.waitForSelector(`#row-task-${latte}`);
must(await page.locator(`#row-task-${first}`).count() === 0, 'the view filters nothing');
await page.getByRole('button', { name: 'Forget the view' }).click();
await page.waitForFunction(() => !document.querySelector('#views li'));
holds('a view is saved, opened by its number, and forgotten');

// The moves of a task, and why the others are closed.
await page.goto(`${origin}/tasks/${first}`);
await page.waitForSelector('.graph .node.now');
must(await page.locator('.moves .why').count() + await page.locator('.moves button').count() > 0, 'no moves');
holds('a task shows its moves');

// Without script every form still works.
const plain = await open({ javaScriptEnabled: false });
const bare = (await login(plain)).page;
await bare.goto(`${origin}/runs/${held('gated')}`);
await bare.locator('.card button', SKIP).click();
await bare.waitForURL((url) => url.searchParams.get('done') === 'answer');
must(await bare.getByText('Your answer was taken.').count() === 1, 'nothing is said');
await plain.close();
holds('a form works without script');

const strange = await hostile(page, origin);
holds('hostile text in every field only appears');

// The engine goes away and comes back.
await page.goto(`${origin}/`);
await page.waitForSelector('#board');
await mark(page);
process.kill(enginePid(), 'SIGKILL');
await page.waitForSelector('#away:not([hidden])', { timeout: 60000 });
await page.screenshot({ path: picture('away') });
const lungo = json('task', 'create', 'lungo', 'Longer', '--no-spawn').task.id;
await page.waitForSelector('#away[hidden]', { state: 'attached', timeout: 60000 });
await page.waitForSelector(`#row-task-${lungo}`, { timeout: 60000 });
await still(page);
holds('the engine is lost and regained without a reload');

// A home in which nothing is yet teaches.
const empty = { ...process.env, SLUICE_HOME: path.join(folder, 'empty') };
mkdirSync(empty.SLUICE_HOME);
process.on('exit', () => said('', ['stop'], { env: empty }));

const faults = [];

async function looks(seen, from, address, words) {
  await seen.goto(from + address);
  await seen.waitForSelector('main');
  const told = (it) => `${it.id}: ${it.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} ${node.any[0]?.message || ''}`).join(' | ')}`;
  faults.push(...(await serious(seen)).map((it) => `${address} ${words}: ${told(it)}`));
  const [wide, window] = await seen.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  if (wide > window) faults.push(`${address} ${words} is ${wide} wide`);
  const name = address.replace(/[^a-z0-9]+/gi, '-').replace(/^-|-$/g, '').slice(0, 40) || 'board';
  await seen.screenshot({ path: picture(`${name}-${words.replace(' ', '-')}`) });
}

// No serious finding of axe on any page, light and dark, wide and at 390 px; and nothing is wider than the window.
recipe('asks', `  - {name: check, type: gate, command: 'false', message: ${JSON.stringify('May it pass? '.repeat(100))}}\n`);
const standing = held('asks');
const all = [...PAGES, ...strange, `/tasks/${first}`, `/tasks/${latte}?tab=changes`, `/tasks/${brew}?tab=terminal`, `/tasks/${brew}?tab=file`,
  `/tasks/${brew}?tab=usage`, `/runs/${gated}?step=build`, `/runs/${standing}`];
async function allLook(colorScheme, width) {
  const context = await open({ colorScheme, viewport: { width, height: 844 }, bypassCSP: true });
  const { page: seen } = await login(context);
  const words = `${colorScheme} ${width}`;
  for (const address of all) await looks(seen, origin, address, words);
  const { page: taught, origin: elsewhere } = await login(context, [], empty);
  must(await taught.getByText('Nothing here yet').count() === 1, 'an empty home does not teach');
  await looks(taught, elsewhere, '/?q=', words);
  // A checker that finds nothing on a page with a fault would find nothing anywhere.
  await seen.evaluate(() => {
    const faint = document.querySelector('main').appendChild(document.createElement('p'));
    faint.textContent = 'hardly to be read';
    faint.style.cssText = 'color: #8a8a8a; background: #808080';
  });
  must((await serious(seen)).some((it) => it.id === 'color-contrast'), 'axe does not see a faint text');
  await context.close();
}
for (const width of [1280, 390]) await Promise.all(['light', 'dark'].map((scheme) => allLook(scheme, width)));
must(faults.length === 0, faults.join('\n'));
holds(`axe finds nothing serious on ${all.length + 1} pages, light and dark, at 1280 and 390 px`);

// Who may only look sees no button: by a link for reading, and by a token of this scope at a served engine.
const READ = ['/', `/tasks/${first}`, `/tasks/${latte}?tab=changes`, `/runs/${standing}`, '/workflows/gated?project=coffee', '/settings'];
async function reads(seen, from) {
  for (const address of READ) {
    await seen.goto(from + address);
    await seen.waitForSelector('main section');
    must(await seen.locator('main button:not(.filters button)').count() === 0, `${address} has buttons for a reader`);
  }
}
const library = await open();
await reads((await login(library, ['--read'])).page, origin);
await library.close();
await page.locator('form.who button').click();
await page.waitForURL((url) => url.pathname === '/page/login');
holds('a session for reading has no buttons, and one is logged out');

sluice('stop');
const served = spawn(program, ['serve', '--listen', '127.0.0.1:0'], { cwd: path.join(folder, 'coffee'), stdio: ['ignore', 'pipe', 'inherit'] });
process.on('exit', () => served.kill());
const line = await new Promise((resolve) => createInterface(served.stdout).once('line', resolve));
const network = line.replace('listening on ', '');
ours.add(network);
const seat = await (await open()).newPage();
await seat.goto(`${network}/`);
await seat.getByText('Use a token instead').click();
await seat.locator('input[name=token]').fill(json('token', 'create', '--scope', 'read').token.secret);
await seat.locator('input[name=token]').press('Enter');
await seat.waitForSelector('#board');
await reads(seat, network);
holds('a token for reading shows no buttons at a served engine');

const strangers = [...requested].filter((it) => !ours.has(it));
must(strangers.length === 0, `requests left the origin: ${strangers.join(' ')}`);
holds('no request left the origin');
const real = complaints.filter((text) => !/ERR_CONNECTION|Failed to load resource|net::|status of 4/.test(text));
must(real.length === 0, `the browser complains: ${real.join('\n')}`);
holds('the browser has no complaint');
await browser.close();
process.exit(0);
