// Hostile text in every field that a person, an agent, a repository or a recipe can fill: it does nothing but appear.

import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { answer, folder, held, json, must, recipe, reviewed, said } from './scene.mjs';

// Ends of elements and attributes, handlers, a change of direction, escapes of terminals, quotes, and a template's marks.
const SCRIPT = '<script>window.hacked = 1</script>';
const HOSTILE = `${SCRIPT}</script></title></textarea><img src=x onerror="window.hacked = 1"><svg onload="window.hacked = 1"> ` +
  `" onfocus="window.hacked = 1" autofocus x=' \u202ertl\u2066 \u001b[31m \u001b]0;title\u0007 {{7*7}} & é 漢字 🦀`;
// The same for what must be one line of printed characters.
const LINE = HOSTILE.replaceAll(/[\u0000-\u001f]/g, '');
// The most bytes of a summary.
const LONG = 262144;
// What the page shows of a character that turns the writing.
const TURNED = '<U+202E>rtl';
const OPTION = `<img src=x onerror=window.hacked=1>\u202ertl\u0007`;
const PROJECT = 'te<b>a\u202ertl';
const BRANCH = 'bad.<b>\'"&é漢\u202ertl';
const TEA = `/?project=${encodeURIComponent(PROJECT)}`;

function git(where, ...words) {
  const who = ['-c', `user.name=${LINE}`, '-c', 'user.email=x@example.invalid'];
  const ran = spawnSync('git', [...who, ...words], { cwd: where, encoding: 'utf8' });
  must(ran.status === 0, `git ${words[0]}: ${ran.stderr}`);
}

// A project and a task with such names and texts.
function named() {
  const cwd = path.join(folder, 'tea');
  mkdirSync(cwd, { recursive: true });
  git(cwd, 'init', '--quiet', '--initial-branch=main');
  git(cwd, 'commit', '--quiet', '--allow-empty', '-m', LINE);
  must(said('', ['project', 'add', '--name', PROJECT], { cwd }).code === 0, 'the project cannot be added');
  const context = `# ${HOSTILE}\n\n[go](javascript:window.hacked=1) ![x](http://evil.example/x.png)\n\n${SCRIPT}\n\n${'long '.repeat(200000)}`;
  const create = ['--json', 'task', 'create', '--no-spawn', '--context', '-', '--', BRANCH, HOSTILE];
  return answer(said(context, create, { cwd }), create).task.id;
}

// Changes with such names of files, lines, subjects and authors.
function changed() {
  const id = reviewed('files', HOSTILE, 'edit tea.txt one two');
  const where = json('task', 'show', id).task.workspace;
  const bad = path.join(where, '<img src=x onerror="window.hacked = 1">');
  mkdirSync(bad);
  writeFileSync(path.join(bad, `${LINE.replaceAll('/', '').slice(0, 60)}.txt`), `${HOSTILE}\n`.repeat(50));
  git(where, 'add', '.');
  git(where, 'commit', '--quiet', '-m', LINE);
  writeFileSync(path.join(where, '<b>.txt'), `${HOSTILE}\n`);
  return id;
}

// What no argument of a program can hold goes by the socket.
function post(address, body) {
  const words = ['-sS', '--unix-socket', path.join(folder, 'home/engine.sock'), '-H', 'Content-Type: application/json', '-d', '@-'];
  const ran = spawnSync('curl', [...words, `http://x${address}`], { input: JSON.stringify(body), encoding: 'utf8', maxBuffer: 64 << 20 });
  return JSON.parse(ran.stdout);
}

// A summary of a megabyte is refused by name; the longest that is taken has no place to break it.
function longest() {
  const create = (summary, branch) => post('/v1/lifecycle/tasks', { project: 'coffee', branch, summary, no_spawn: true });
  const refused = create(SCRIPT + 'x'.repeat(1 << 20), 'too-long');
  must(refused.code === 'too_large' && refused.hint, `a summary of a megabyte: ${JSON.stringify(refused).slice(0, 300)}`);
  const taken = create(SCRIPT + 'w'.repeat(LONG - SCRIPT.length), 'longest');
  must(taken.task, `the longest summary: ${JSON.stringify(taken).slice(0, 300)}`);
  return taken.task.id;
}

// A worker and a colony with such names; a worker of such a role.
function worker() {
  const colony = post('/v1/colonies', { name: LINE.slice(0, 190) });
  must(colony.colony_id, `the colony: ${JSON.stringify(colony)}`);
  const crab = post('/v1/crabs/register', { colony_id: colony.colony_id, name: `${LINE.slice(0, 150)}\u202ertl`, role: LINE.slice(0, 190) });
  must(crab.crab_id || crab.crab, `the worker: ${JSON.stringify(crab)}`);
}

// A run whose agent asks such a question with such options, and a person's view with such a name.
function asking() {
  const ask = `sluice step ask "Which ${SCRIPT}\u202ertl?" --option "${OPTION}" --option other`;
  recipe('asking', `  - {name: ask, type: agent, prompt: ${JSON.stringify(`demo: ${ask}`)}}\n`);
  return held('asking');
}

// A run with such a prompt, description, question, log and output; a recipe that cannot be read; a token.
function loud() {
  writeFileSync(path.join(folder, 'loud.txt'), `${HOSTILE}\n`.repeat(5000));
  const text = JSON.stringify(LINE);
  recipe('loud', `  - {name: say, type: script, command: 'cat ${folder}/loud.txt'}\n` +
    `  - {name: think, type: agent, prompt: ${JSON.stringify(`demo: say ${SCRIPT} </script>`)}}\n` +
    `  - {name: gate, type: gate, command: 'tail -n 3 ${folder}/loud.txt; false', message: ${text}}\n`, LINE);
  const place = path.join(folder, 'coffee/.sluice/workflows');
  mkdirSync(place, { recursive: true });
  writeFileSync(path.join(place, 'bad.yml'), `name: bad\ndescription: ${text}\nsteps: ${text}\n`);
  // Names of workflows and steps that no checker takes are in its findings.
  writeFileSync(path.join(place, 'names.yml'), `name: ${text}\nsteps:\n  - {name: ${text}, type: script, command: 'true', needs: [${text}]}\n`);
  json('token', 'create', '--scope', 'read', '--name', LINE.slice(0, 60));
  return held('loud', '--prompt', HOSTILE);
}

// Nothing ran, no element is there that the page has not made itself, and nothing steers a terminal or turns the writing.
async function only(page, origin, address) {
  await page.goto(origin + address);
  await page.waitForSelector('main');
  const found = await page.evaluate(() => ({
    ran: window.hacked !== undefined,
    made: document.querySelectorAll('img, script:not([src^="/page/page.js"]), [onerror], [onload], [onfocus], a[href^="javascript"], main b').length,
    steers: /[\u0000-\u0008\u000b-\u001f]/.test(document.documentElement.outerHTML),
    turns: /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(document.documentElement.outerHTML),
    title: document.title.length,
  }));
  must(!found.ran && found.made === 0 && !found.steers && !found.turns && found.title < 400, `${address}: ${JSON.stringify(found)}`);
}

async function shows(page, address, place, text) {
  await page.goto(address);
  const all = (await page.locator(place).allTextContents()).join('\n');
  must(all.includes(text), `${place} of ${address} does not show ${text}: ${all.slice(0, 300)}`);
}

// Fills the home, looks at every page, and gives the addresses whose look must hold too.
export async function hostile(page, origin) {
  const [tea, files, long, run, asks] = [named(), changed(), longest(), loud(), asking()];
  worker();
  const tabs = (id) => ['timeline', 'terminal', 'changes', 'file', 'usage'].map((tab) => `/tasks/${id}?tab=${tab}`);
  const query = encodeURIComponent(HOSTILE);
  const addresses = ['/', '/?view=columns', TEA, `/?q=${query}`, `/?project=${query}`, ...tabs(tea), ...tabs(files), ...tabs(long),
    `/runs/${run}`, ...['say', 'think', 'gate', query].map((step) => `/runs/${run}?step=${step}`), '/workflows?project=coffee',
    `/runs/${asks}`, `/runs/${asks}?step=ask`, '/workflows/loud?project=coffee', '/workflows/bad?project=coffee', '/workflows/names?project=coffee',
    '/workflows/bad', `/workflows?project=${query}`, `/workflows/default?project=${encodeURIComponent(PROJECT)}`, `/workflows/${query}`, `/tasks/${query}`, '/workers', '/workspaces',
    '/costs', '/events', `/events?type=${query}`, '/settings', `/page/login?code=${query}`];
  for (const address of addresses) await only(page, origin, address);
  await shows(page, `${origin}/tasks/${tea}`, 'h1', 'bad.<b>');
  await shows(page, `${origin}/tasks/${tea}`, '.summary', SCRIPT);
  await shows(page, `${origin}/tasks/${tea}?tab=file`, '.prose', '{{7*7}}');
  await shows(page, `${origin}/tasks/${files}?tab=changes`, '.file summary', 'onerror="window.hacked = 1"');
  await shows(page, `${origin}/tasks/${files}?tab=changes`, '.commits', SCRIPT);
  await shows(page, `${origin}/runs/${run}?step=say`, '#step-log pre', '</script>');
  // Where each of these texts stands, what turns the writing is seen. (Of names and texts of rows
  // the home leaves it out, and in a diff it puts U+FFFD in its place.)
  const turned = [['/', '.project'], ['/', '.chips'], ['/', '.card .text'], ['/', '.card .lines'], ['/workers', 'th'],
    [`/tasks/${tea}`, 'h1'], [`/tasks/${tea}`, '.crumbs'], [`/tasks/${tea}`, '.summary'], [`/tasks/${tea}?tab=file`, '.prose'],
    [`/runs/${run}`, '.summary'], [`/runs/${run}?step=say`, '#step-log pre'],
    [`/runs/${asks}`, '.card .text'], [`/runs/${asks}`, '.card button'], ['/workflows?project=coffee', 'td'], ['/workflows/bad?project=coffee', '.summary']];
  const hidden = [];
  for (const [address, place] of turned) await shows(page, origin + address, place, TURNED).catch((error) => hidden.push(error.message));
  must(hidden.length === 0, hidden.join('\n'));
  await shows(page, `${origin}/runs/${run}`, '.card .text', SCRIPT);
  // An answer's words go into the history.
  await page.locator('.card details.message summary').click();
  await page.locator('.card textarea').fill(HOSTILE);
  await page.locator('.card button', { hasText: /skip/i }).click();
  await page.waitForSelector('.run-completed');
  await only(page, origin, `/events?correlation=${run}`);
  return [`/tasks/${tea}`, `/tasks/${long}`, `/tasks/${files}?tab=changes`, `/runs/${run}?step=say`, TEA];
}
