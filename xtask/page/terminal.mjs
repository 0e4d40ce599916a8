// A program in a terminal of its own (tmux), and its screen as an SVG: text and colours as they stand there, in any font.

import { spawnSync } from 'node:child_process';
import { createReadStream, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fifo, folder, must, program } from './scene.mjs';

const WIDE = 8, HIGH = 17, EDGE = 12; // of a character, of a line, of the space around
const INK = '#d8dee6', PAPER = '#12161c';
// The 16 colours, as they are read on dark paper.
const COLOURS = ['#3b4450', '#f0787c', '#7ccf8a', '#e5b95c', '#74a8f5', '#c792ea', '#5fc9cf', '#d8dee6',
  '#8a94a2', '#ff9a9d', '#9be3a6', '#f3d08a', '#9cc2ff', '#dcb5f5', '#8fe3e8', '#ffffff'];
const WITHIN = 60000; // milliseconds until a screen must show what is waited for

export class Terminal {
  constructor(columns, rows, ...words) {
    this.socket = path.join(folder, 'pictures.sock');
    const command = [program, ...words].map((word) => `'${word}'`).join(' ');
    this.tmux('-f', '/dev/null', 'new-session', '-d', '-s', 'd', '-x', String(columns), '-y', String(rows), command);
    this.tmux('set', '-g', 'status', 'off');
    // Whatever is written to the terminal also goes into a pipe: who waits for a screen looks again then.
    const { file } = fifo('written');
    this.written = createReadStream(file).on('data', () => this.wake?.());
    this.tmux('pipe-pane', '-t', 'd', '-O', `cat > '${file}'`);
    [this.columns, this.rows] = [columns, rows];
  }

  tmux(...words) {
    const env = { ...process.env, TERM: 'xterm-256color' };
    const ran = spawnSync('tmux', ['-S', this.socket, ...words], { cwd: path.join(folder, 'coffee'), encoding: 'utf8', env });
    must(ran.status === 0, `tmux ${words.join(' ')}: ${ran.stderr}`);
    return ran.stdout;
  }

  press(...keys) {
    for (const key of keys) this.tmux('send-keys', '-t', 'd', key);
  }

  async shows(...words) {
    let isLate = false;
    const late = setTimeout(() => { isLate = true; this.wake(); }, WITHIN);
    for (;;) {
      const written = new Promise((resolve) => { this.wake = resolve; });
      const screen = this.tmux('capture-pane', '-p', '-t', 'd');
      if (words.every((word) => screen.includes(word))) return clearTimeout(late);
      must(!isLate, `the terminal never shows ${words.join(' and ')}:\n${screen}`);
      await written;
    }
  }

  keep(file) {
    const lines = this.tmux('capture-pane', '-e', '-p', '-t', 'd').split('\n').slice(0, this.rows);
    writeFileSync(file, picture(lines, this.columns));
  }

  close() {
    spawnSync('tmux', ['-S', this.socket, 'kill-server']);
  }
}

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

function picture(lines, columns) {
  const wide = columns * WIDE + 2 * EDGE, high = lines.length * HIGH + 2 * EDGE;
  const all = lines.map((line, row) => drawn(line, EDGE + row * HIGH)).join('');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${wide} ${high}" width="${wide}" height="${high}" ` +
    `font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="13">\n` +
    `<rect width="100%" height="100%" rx="8" fill="${PAPER}"/>\n${all}</svg>\n`;
}

// The pieces of a line with one look each. The length of each is given, so that columns stand below each other in any font.
function drawn(line, top) {
  let look = {}, column = 0, out = '';
  for (const [, codes, text] of line.matchAll(/\u001b\[([\d;]*)m|([^\u001b]+)/g)) {
    if (text === undefined) {
      look = changed(look, codes);
      continue;
    }
    const letters = [...text].length, x = EDGE + column * WIDE, length = letters * WIDE;
    const [ink, paper] = look.reversed ? [look.paper || PAPER, look.ink || INK] : [look.ink || INK, look.paper];
    if (paper) out += `<rect x="${x}" y="${top}" width="${length}" height="${HIGH}" fill="${paper}"/>`;
    const more = `${look.bold ? ' font-weight="bold"' : ''}${look.dim ? ' opacity=".65"' : ''}`;
    if (text.trim()) {
      out += `<text x="${x}" y="${top + 13}" textLength="${length}" lengthAdjust="spacingAndGlyphs" xml:space="preserve" fill="${ink}"${more}>${escaped(text)}</text>`;
    }
    column += letters;
  }
  return out && `${out}\n`;
}

function changed(look, codes) {
  const next = { ...look }, all = codes.split(';').map(Number);
  while (all.length) {
    const code = all.shift();
    if (code === 0) for (const key of Object.keys(next)) delete next[key];
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 22) next.bold = next.dim = false;
    else if (code === 7 || code === 27) next.reversed = code === 7;
    else if (code === 38 || code === 48) next[code === 38 ? 'ink' : 'paper'] = all.shift() === 5 ? COLOURS[all.shift()] : rgb(all.splice(0, 3));
    else if (code === 39) next.ink = undefined;
    else if (code === 49) next.paper = undefined;
    else if (code >= 30 && code < 38) next.ink = COLOURS[code - 30];
    else if (code >= 90 && code < 98) next.ink = COLOURS[code - 82];
    else if (code >= 40 && code < 48) next.paper = COLOURS[code - 40];
    else if (code >= 100 && code < 108) next.paper = COLOURS[code - 92];
  }
  return next;
}

const rgb = (parts) => `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`;
