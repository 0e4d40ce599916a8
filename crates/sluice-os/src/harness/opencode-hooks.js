// Written by Sluice for one session of opencode: it tells what the agent does, and changes nothing.
import { spawn } from "node:child_process";

const WANTED = ["permission.asked", "permission.replied", "question.asked", "question.replied", "question.rejected", "session.idle"];
// Sessions of subagents: that they are idle says nothing about the agent.
const children = new Set();
let busy = false;
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
      const now = about.status?.type === "busy";
      if (now && !busy) tell(event);
      busy = now;
    } else if (WANTED.includes(event.type) && !(event.type === "session.idle" && isChild)) {
      tell(event);
    }
  },
});
