// A scene as on a usual day, for the pictures: tasks that wait, work, crash and have not begun, and a run at a gate.

import { fifo, held, json, recipe, reviewed, sluice, task } from './scene.mjs';

export function usualDay() {
  json('project', 'update', 'coffee', '--pool-size', '6');
  recipe('nightly', "  - {name: plan, type: agent, prompt: 'demo: say three changes'}\n" +
    "  - {name: build, type: script, command: 'echo compiling; echo done'}\n" +
    "  - {name: tests, type: gate, command: 'echo running 214 tests; echo FAILED pager::tests::wraps; echo 3 tests failed; false', " +
    'message: 3 tests fail after flask 4.1. Publish anyway?}\n' +
    "  - {name: publish, type: script, command: 'echo published'}\n", 'Build, test and publish');
  const latte = reviewed('latte', 'Foam the milk longer, and say so in the README',
    'edit brew.txt one two three; edit README.md "# Coffee, and how to brew it"');
  task('espresso', 'Grind finer', `worker: say reading src/grinder.rs; wait for ${fifo('busy').file}`);
  const crema = task('crema', 'Why is there no crema on Mondays?', 'crash');
  json('task', 'create', 'ristretto', 'Shorter shots', '--no-spawn');
  const nightly = held('nightly', '--prompt', 'Release 4.1');
  sluice('task', 'wait', crema);
  return { latte, nightly };
}
