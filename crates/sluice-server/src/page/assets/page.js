// The page's module: it keeps what is shown up to date, and sends forms without leaving the page. Hints of the engine name
// what changed; those parts are asked for again and put in by id. All works without it, only less lively. No text becomes
// HTML here (`require-trusted-types-for 'script'`): a request whose answer is a document gives nodes, which are adopted.

const PAUSE = 250; // milliseconds between two requests for parts, at least
const AGAIN = [1000, 2000, 5000, 10000]; // milliseconds until the engine is tried again
const KEPT = 50; // tasks whose marks and drafts the browser keeps, at most
const away = document.getElementById('away'), said = document.getElementById('said');
const TYPED = 'form[method=post]:not(#review) :is(textarea, input:not([type]))';
const wanted = new Set(), looked = new WeakMap(), ends = new WeakMap(), typed = new Map();
let asking = false, asked = 0, timer = 0, source = null, failures = 0, kept = {}, stored = true;
let cursor = document.body.dataset.cursor;

function load(method, address, body) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, address);
    request.responseType = 'document';
    request.setRequestHeader('Accept', 'text/html');
    request.onload = () => resolve(request);
    request.onerror = request.onabort = () => reject(new Error('no answer'));
    request.send(body ?? null);
  });
}
const lost = (is) => { away.hidden = !is; document.body.classList.toggle('is-away', is); };
function want(ids) {
  for (const id of ids) wanted.add(id);
  if (timer || asking || !wanted.size || document.hidden) return;
  timer = setTimeout(fetchParts, Math.max(0, asked + PAUSE - Date.now()));
}
async function fetchParts() {
  timer = 0;
  const ids = [...wanted].filter((id) => document.getElementById(id));
  wanted.clear();
  if (!ids.length) return;
  const address = new URL(location.href);
  address.searchParams.set('part', ids.join(','));
  address.searchParams.delete('done');
  address.hash = '';
  asking = true;
  try {
    const answer = await load('GET', address);
    if (answer.status === 401) return ended(answer.response);
    if (answer.status === 200) put(answer.response, ids);
    else if (answer.status >= 500) ids.forEach((id) => wanted.add(id));
  } catch {
    lost(true);
    ids.forEach((id) => wanted.add(id));
  } finally {
    [asking, asked] = [false, Date.now()];
    if (wanted.size && away.hidden) want([]);
  }
}
function ended(page) {
  source = source?.close() ?? null;
  const login = page?.getElementById('login');
  if (login) document.getElementById('main').replaceChildren(document.importNode(login, true));
}
function put(page, ids) {
  for (const id of ids) {
    const old = document.getElementById(id), fresh = page.getElementById(id);
    // Comments stand between lines that know each other by their order: they are put back afterwards.
    old?.querySelectorAll('tr.comment').forEach((row) => row.remove());
    if (old && fresh) morph(old, fresh);
    old?.querySelectorAll('#review').forEach(restore);
  }
  retype();
  dress();
}
// Makes a node like another, and keeps what a person has opened, typed or put the focus on.
function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  // A form's `id` may be a field of that name, not its own.
  const id = (node) => node.getAttribute?.('id');
  if (old.nodeType !== 1 || old.nodeName !== fresh.nodeName || id(old) !== id(fresh)) return old.replaceWith(clean(fresh));
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && name !== 'open') old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (name !== 'open' && old.getAttribute(name) !== value) old.setAttribute(name, value);
  if ('list' in old.dataset) return rows(old, fresh);
  const before = [...old.childNodes], after = [...fresh.childNodes];
  after.forEach((node, place) => (before[place] ? morph(before[place], node) : old.append(clean(node))));
  before.slice(after.length).forEach((node) => node.remove());
}
// The rows of a list change in place. While the pointer or the focus is among them none moves: what is new comes last,
// what is gone is greyed, and the order is put right when the person has left.
function rows(list, fresh) {
  const held = list.matches(':hover') || list.contains(document.activeElement);
  const known = new Map([...list.children].map((row) => [row.id, row]));
  let last = null;
  for (const row of fresh.children) {
    const old = known.get(row.id);
    known.delete(row.id);
    old?.classList.remove('gone');
    if (old) morph(old, row);
    const now = document.getElementById(row.id), here = now?.parentElement === list ? now : clean(row);
    if (held && !here.isConnected) list.append(here);
    if (held) continue;
    const place = last ? last.nextElementSibling : list.firstElementChild;
    if (place !== here) list.insertBefore(here, place);
    last = here;
  }
  for (const row of known.values()) {
    if (!held) row.remove();
    row.classList.add('gone');
    row.removeAttribute('id');
  }
  if (held) list.dataset.unsettled = '';
}
function clean(node) {
  const own = document.importNode(node, true);
  if (own.nodeType === 1) own.querySelectorAll('script').forEach((script) => script.remove());
  return own;
}
function settle(event) {
  const list = event.target.closest?.('[data-unsettled]');
  if (!list || list.contains(event.relatedTarget)) return;
  delete list.dataset.unsettled;
  list.querySelectorAll(':scope > .gone').forEach((row) => row.remove());
  want([list.closest('[data-live]')?.id]);
}
for (const leaving of ['pointerout', 'focusout']) document.addEventListener(leaving, settle);
function connect() {
  source = new EventSource('/page/hints?after=' + cursor);
  source.onopen = () => {
    if (failures || !away.hidden) want(live());
    failures = 0;
    lost(false);
  };
  source.onmessage = (event) => {
    cursor = event.lastEventId || cursor;
    want(live(JSON.parse(event.data).about));
  };
  source.onerror = (event) => {
    lost(true);
    failures += 1;
    if (event.target.readyState === EventSource.CLOSED && event.target === source) reconnect();
  };
}
async function reconnect() {
  source?.close();
  await new Promise((done) => setTimeout(done, AGAIN[Math.min(failures, AGAIN.length) - 1] || AGAIN[0]));
  try {
    // A session that has ended is told by the page itself.
    const answer = await load('GET', location.pathname + '?part=none');
    if (answer.status === 401) return ended(answer.response);
  } catch { /* the engine is still away */ }
  source = null;
  if (!document.hidden) connect();
}
function live(about) {
  const meant = (of) => !about || about.includes('*') || of.includes('*') || of.some((id) => about.includes(id));
  return [...document.querySelectorAll('[data-live]')].filter((part) => meant(part.dataset.live.split(' '))).map((part) => part.id);
}
// A window that is not looked at follows nothing: a browser has few connections for all its windows together.
document.addEventListener('visibilitychange', () => {
  if (document.hidden) source = source?.close() ?? null;
  else if (!source) connect();
  want([]);
});
// What changes without an event: a terminal, a log, the end of a bar. Only while it is looked at.
setInterval(() => {
  if (document.hidden || !away.hidden) return;
  for (const part of document.querySelectorAll('[data-every]')) {
    if (Date.now() - (looked.get(part) || 0) < Number(part.dataset.every)) continue;
    looked.set(part, Date.now());
    want([part.id]);
  }
}, 1000);

document.addEventListener('submit', async (event) => {
  const form = event.target;
  if (form.method !== 'post' || 'plain' in form.dataset || event.defaultPrevented) return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form, event.submitter));
  body.set('key', document.querySelector('form.who [name=key]').value); // a part that was put in has none
  const busy = (is) => Object.assign(form, { inert: is, ariaBusy: is });
  busy(true);
  try {
    const answer = await load('POST', form.action, body);
    if (answer.status === 401) return ended(answer.response);
    const page = answer.response, to = new URL(answer.responseURL || location.href);
    if (answer.status === 200 && to.pathname !== location.pathname) return location.assign(to.pathname + to.search);
    const words = page.querySelector(answer.status === 200 ? '#said' : '#problem');
    said.replaceChildren(...[...(words?.childNodes || [])].map(clean));
    said.classList.toggle('refused', answer.status !== 200);
    if (answer.status === 200) {
      if (form.matches('#review')) keep((own) => Object.assign(own, { message: '', comments: [] }));
      for (const field of form.elements) typed.delete(spot(field));
      form.reset();
      form.closest('details.confirm')?.removeAttribute('open');
      put(page, [...document.querySelectorAll('main > section[id]')].map((part) => part.id));
    }
    said.scrollIntoView({ block: 'nearest' });
  } catch { lost(true); } finally { busy(false); }
});
// What is typed outlives the nodes of its form: it is known by what the form is about, and by its field.
const spot = ({ form, name }) => [name, form.getAttribute('action'), ...['act', 'kind', 'id'].map((it) => form.querySelector(`[name=${it}]`)?.value)].join(' ');
const retype = () => document.querySelectorAll(TYPED).forEach((field) => {
  const text = typed.get(spot(field)) ?? field.value;
  if (field.value !== text) field.closest('details')?.setAttribute('open', '');
  field.value = text;
});
// What the browser keeps of a task: the files that were viewed, and the comments that were not sent yet.
function keep(change) {
  try { if (stored) kept = JSON.parse(localStorage.getItem('sluice') || '{}'); } catch { stored = false; }
  const own = { viewed: {}, message: '', comments: [], ...kept[location.pathname] };
  if (!change) return own;
  change(own);
  delete kept[location.pathname];
  kept = Object.fromEntries([...Object.entries(kept).slice(1 - KEPT), [location.pathname, own]]);
  try { localStorage.setItem('sluice', JSON.stringify(kept)); } catch { stored = false; /* only this window knows it */ }
}
function marks(folds) {
  const files = [...document.querySelectorAll('[data-mark]')], { viewed } = files.length ? keep() : {};
  for (const file of files) {
    const is = viewed[file.dataset.spot] === file.dataset.mark, lines = file.querySelector('details');
    file.firstElementChild.hidden = false;
    file.querySelector('input').checked = is;
    if (folds && is) lines.open = false;
    document.querySelector(`.tree a[href="#${lines.id}"]`).classList.toggle('seen', is);
  }
}
document.addEventListener('change', ({ target }) => {
  const file = target.closest('[data-mark]');
  if (!file || target.type !== 'checkbox') return;
  keep((own) => { own.viewed[file.dataset.spot] = target.checked ? file.dataset.mark : undefined; });
  file.querySelector('details').open = !target.checked;
  marks();
});

// A comment at a line: its number opens a place for it, without leaving the page.
function comment(line) {
  const row = line.closest('tr'), there = row.nextElementSibling;
  if (there?.classList.contains('comment')) return there.querySelector('textarea');
  const place = document.importNode(document.getElementById('comment-row').content, true);
  place.querySelector('input').value = line.dataset.at;
  place.querySelector('span').textContent = line.getAttribute('aria-label');
  row.after(place);
  return row.nextElementSibling.querySelector('textarea');
}
function draft() {
  const form = document.getElementById('review');
  const texts = [...form.querySelectorAll('tr.comment')].map((row) => [...row.querySelectorAll('input, textarea')].map((it) => it.value));
  keep((own) => Object.assign(own, { message: form.elements.message.value, comments: texts.filter(([, text]) => text) }));
}
function restore(form) {
  const { message, comments } = keep();
  const homeless = comments.filter(([at, text]) => {
    const line = form.querySelector(`a[data-at="${CSS.escape(at)}"]`);
    if (line) comment(line).value = text;
    return !line;
  });
  // A line that is not shown any more cannot have a comment; its words are not lost.
  form.elements.message.value = [message, ...homeless.map(([at, text]) => `${decodeURIComponent(at).replace(/^(\w+):(\w+):(\d+):(.*)$/, '$4:$3 ($1, $2)')}: ${text}`)].filter(Boolean).join('\n');
}
document.addEventListener('input', ({ target }) => {
  if (target.form?.matches('#review')) draft();
  else if (target.matches(TYPED)) typed.set(spot(target), target.value);
});
document.addEventListener('click', (event) => {
  const line = event.target.closest?.('a[data-at]'), drop = event.target.closest?.('[data-drop]');
  drop?.closest('tr').remove();
  if (drop) draft();
  if (!line || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  comment(line).focus();
});

// Keys: / filters, 1 to 9 open saved views, n goes to the next that needs a person, j and k go through rows and cards.
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, textarea, select')) return;
  const jump = { j: 1, k: -1, n: 1 }[event.key];
  if (event.key === '/') {
    event.preventDefault();
    document.querySelector('.filters input:not([type=hidden])')?.focus();
  } else if (jump) {
    const all = [...document.querySelectorAll(event.key === 'n' ? '.card h3 a' : '.card h3 a, a.row')];
    all[(all.indexOf(document.activeElement) + jump + all.length) % all.length]?.focus();
  } else if (/^[1-9]$/.test(event.key)) document.querySelectorAll('#views li > a')[event.key - 1]?.click();
});

// Ages grow by themselves, and a log that is followed stays at its end.
function times() {
  for (const time of document.querySelectorAll('time[datetime]:not([data-clock])')) {
    const seconds = Math.max(0, Math.floor((Date.now() - Date.parse(time.dateTime)) / 1000));
    const [unit, size] = seconds < 60 ? ['s', 1] : seconds < 3600 ? ['m', 60] : seconds < 86400 ? ['h', 3600] : ['d', 86400];
    const text = Math.floor(seconds / size) + unit;
    if (!Number.isNaN(seconds) && time.textContent !== text) time.textContent = text;
  }
}
function tails() {
  for (const log of document.querySelectorAll('[data-tail]')) {
    if (ends.get(log) !== false) log.scrollTop = log.scrollHeight;
    log.onscroll = () => ends.set(log, log.scrollTop + log.clientHeight >= log.scrollHeight - 4);
  }
}
const dress = (isFirst) => [times, tails, marks].forEach((part) => part(isFirst));
dress(true);
document.querySelectorAll('#review').forEach(restore);
setInterval(times, 20000);
connect();
