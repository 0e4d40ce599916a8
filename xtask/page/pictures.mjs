// Makes the pictures of README and docs from a real run of the real program: `cargo xtask pictures` starts it.

import { browser, login, open, picture } from './scene.mjs';
import { Terminal } from './terminal.mjs';
import { usualDay } from './usual_day.mjs';

const { latte, nightly } = usualDay();

const { page, origin } = await login(await open({ viewport: { width: 1280, height: 800 } }));
for (const [name, address, selector] of [['page-board', '/', '.card'], ['page-task', `/tasks/${latte}?tab=changes`, 'table.lines'],
  ['page-run', `/runs/${nightly}?step=tests`, '.graph .node.held']]) {
  await page.goto(origin + address);
  await page.waitForSelector(selector);
  await page.screenshot({ path: picture(name), fullPage: name !== 'page-board' });
}
await browser.close();

const terminal = new Terminal(120, 20, 'dashboard');
try {
  await terminal.shows('NEEDS YOU', 'latte', 'espresso', 'crema', 'nightly', 'ristretto');
  terminal.keep(picture('dashboard', 'svg'));
  terminal.press('/', ...'latte', 'Enter', 'd');
  await terminal.shows('brew.txt', 'README.md');
  terminal.keep(picture('dashboard-diff', 'svg'));
} finally {
  terminal.close();
}
process.exit(0);
