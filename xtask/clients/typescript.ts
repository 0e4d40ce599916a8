// The types that openapi-typescript makes of the document, and openapi-fetch: the client lists, creates and answers.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const { SLUICE_URL: baseUrl, SLUICE_TOKEN: token } = process.env;
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

function given<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const body = { project: "coffee", branch: "typescript", summary: "From a generated client", no_spawn: true };
const made: components["schemas"]["TaskAnswer"] = given(await client.POST("/v1/lifecycle/tasks", { body }));
const listed = given(await client.GET("/v1/lifecycle/tasks", {}));
if (!listed.tasks.some((task) => task.id === made.task.id)) throw new Error("the task is not listed");

const question = given(await client.GET("/v1/inbox", {})).questions[0];
const answered = given(await client.POST("/v1/inbox", { body: { id: question.id, option: "skip" } }));
if (answered.run?.id !== question.run) throw new Error("another run was answered");

// Where words are chosen from: these are types of their own.
const states: components["schemas"]["CrabState"][] = given(await client.GET("/v1/crabs", {})).map((crab) => crab.state);
given(await client.GET("/v1/missions", {}));
given(await client.GET("/v1/tasks", {}));
given(await client.GET("/v1/tokens", {}));
given(await client.GET("/workflows", {}));
console.log(`openapi-typescript: ${listed.tasks.length} tasks, ${states.length} crabs, ${question.id} answered`);
