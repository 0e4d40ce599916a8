// Restate as the benchmark of the product runs it: a service whose handlers are made of durable steps (`ctx.run`).
//
//     restate_peer.mjs PORT PIPE
//
// A handler gets {steps, kind, atOnce, first}. `kind` is `noop`, or `spawn`: the step starts `true` and waits for it. With
// `first` the first step writes a byte to PIPE; otherwise the handler writes one when its last step has ended.

import { spawn } from "node:child_process";
import { openSync, writeSync } from "node:fs";

// Node has it since version 22, and the SDK needs it; Debian's is older.
Promise.withResolvers ??= () => {
  const it = {};
  it.promise = new Promise((resolve, reject) => Object.assign(it, { resolve, reject }));
  return it;
};
const restate = await import("@restatedev/restate-sdk");

const [port, pipe] = process.argv.slice(2);
// Opened for both, so that opening does not wait for the driver.
const told = openSync(pipe, "r+");
const tell = () => writeSync(told, "x");

const started = (command) =>
  new Promise((resolve, reject) => {
    const child = spawn("/bin/sh", ["-c", command, pipe], { stdio: ["ignore", "pipe", "pipe"] });
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve(code) : reject(new Error(`exit ${code}`))));
  });

const step = (kind) => (kind === "spawn" ? started("true") : 0);

// So many at once as the others may.
const limited = (atOnce, kind) => {
  let free = atOnce;
  const waiting = [];
  return async () => {
    if (free > 0) free -= 1;
    else await new Promise((resolve) => waiting.push(resolve));
    try {
      return await step(kind);
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
};

const bench = restate.service({
  name: "bench",
  handlers: {
    chain: async (ctx, { steps, kind, first }) => {
      for (let number = 0; number < steps; number += 1) {
        const tells = first && number === 0;
        await ctx.run(`s${number}`, () => (tells ? started('echo > "$0"') : step(kind)));
      }
      if (!first) tell();
    },
    fan: async (ctx, { steps, kind, atOnce }) => {
      const one = limited(atOnce, kind);
      const all = Array.from({ length: steps }, (_, number) => ctx.run(`s${number}`, one));
      await restate.RestatePromise.all(all);
      tell();
    },
  },
});

restate.serve({ services: [bench], port: Number(port) });
