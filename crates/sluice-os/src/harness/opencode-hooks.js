// Written by Sluice for one session of opencode: it tells what the agent does, and changes nothing.
import { spawn } from "node:child_process";

const WANTED = ["permission.asked", "permission.replied", "question.asked", "question.replied", "question.rejected", "session.idle", "session.error"];
// The first attempt to reach the model passes by itself often enough.
const PATIENCE = 2;
// Sessions of subagents: that they are idle says nothing about the agent.
const children = new Set();
let busy = false;
let waits = false;
let failed = false;
let last = Promise.resolve();

// One after the other, so that they arrive in order. Nothing that goes wrong here is the agent's matter.
const tell = (event) => {
  last = last.then(() => new Promise((done) => {
    try {
      const child = spawn(SLUICE, ["hook", "opencode", SESSION], { stdio: ["pipe", "ignore", "ignore"] });
      child.on("error", done);
      child.on("close", done);
      child.stdin.on("error", () => {});
      child.stdin.end(JSON.stringify({ type: event.type, properties: event.properties }));
    } catch {
      done();
    }
  }));
};

export const Sluice = async () => ({
  event: async ({ event }) => {
    const about = event.properties ?? {};
    if (about.info?.parentID) children.add(about.info.id);
    const isChild = children.has(about.sessionID);
    if (event.type === "session.status" && !isChild) {
      const status = about.status ?? {};
      if (status.type === "retry" && status.attempt >= PATIENCE && !waits) {
        waits = true;
        tell(event);
      } else if (status.type === "busy" && !busy) {
        tell(event);
      }
      // It is busy again after each attempt: only what the model says tells that it was reached.
      busy = status.type === "busy" || status.type === "retry";
    } else if (event.type === "message.part.updated" && waits && !isChild) {
      waits = false;
      tell({ type: "session.status", properties: { status: { type: "busy" } } });
    } else if (WANTED.includes(event.type) && !(event.type === "session.idle" && isChild)) {
      // A turn that failed is idle afterwards: what failed says more.
      const isEcho = event.type === "session.idle" && failed;
      failed = event.type === "session.error" && about.error?.name !== "MessageAbortedError";
      if (!isEcho) tell(event);
    }
  },
});
