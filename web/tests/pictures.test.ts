import assert from "node:assert/strict";
import { test } from "node:test";
import { lifeOf } from "../src/pages/job/spans";
import { countdown } from "../src/pages/nodes/countdown";
import { perMinutes } from "../src/pages/overview/rates";
import { BOX, curve, layout } from "../src/pages/recurring/layout";
import { history } from "../src/pages/scaling/history";
import { reasonOf } from "../src/pages/scaling/reason";
import { sparkPath } from "../src/parts/spark";
import type { Attempt } from "../src/wire/types";
import { decision, job, pool, recurring } from "./made";

const second = (value: number) => new Date(Date.parse("2026-11-16T12:00:00Z") + value * 1000).toISOString();
const now = Date.parse(second(100));

function attempt(number: number, start: number, end: number | null, ended: string | null): Attempt {
  return {
    number,
    node: "n",
    worker: 1,
    started_at: second(start),
    ended_at: end === null ? null : second(end),
    ended,
    error: null,
    message: null,
    traceback: null,
    run: null,
  };
}

test("the life of a job is waits and runs to scale, without gaps", () => {
  const life = lifeOf(
    job({
      state: "dead",
      created_at: second(0),
      finished_at: second(40),
      attempts: [attempt(1, 10, 20, "raised"), attempt(2, 30, 40, "raised")],
    }),
    now,
  );
  assert.deepEqual(
    life.stretches.map((one) => [one.kind, one.start, one.width]),
    [
      ["wait", 0, 0.25],
      ["run", 0.25, 0.25],
      ["wait", 0.5, 0.25],
      ["run", 0.75, 0.25],
    ],
  );
  assert.equal(life.seconds, 40);
});

test("a running job runs until now, and its attempt has the next number", () => {
  const life = lifeOf(job({ state: "running", created_at: second(0), started_at: second(50) }), now);
  assert.deepEqual(
    life.stretches.map((one) => [one.kind, one.label, one.seconds]),
    [
      ["wait", "waiting", 50],
      ["run", "attempt 1", 50],
    ],
  );
});

test("a job that only waits is one wait, and clocks that disagree break nothing", () => {
  assert.deepEqual(
    lifeOf(job({ created_at: second(0) }), now).stretches.map((one) => one.kind),
    ["wait"],
  );
  const odd = lifeOf(job({ state: "running", created_at: second(200), started_at: second(150) }), now);
  assert(odd.stretches.every((one) => one.start >= 0 && one.width >= 0 && one.start + one.width <= 1.0001));
});

test("a task stands to the right of all it depends on; one without relations is not in the picture", () => {
  const graph = layout([
    recurring("c", ["b"]),
    recurring("a"),
    recurring("b", ["a"]),
    recurring("alone"),
    recurring("z", [], ["c"]),
  ]);
  const x = Object.fromEntries(graph.boxes.map((box) => [box.name, box.x]));
  assert(x["a"]! < x["b"]! && x["b"]! < x["c"]!);
  assert.equal(x["alone"], undefined);
  assert.deepEqual(graph.edges.map((edge) => edge.kind).sort(), ["blocks", "depends", "depends"]);
  assert(graph.width >= 3 * BOX.width);
  assert(graph.edges.every((edge) => !curve(edge).includes("NaN")));
});

test("a circle, or a name nobody has, does not hang the picture", () => {
  const graph = layout([recurring("a", ["b", "nobody"]), recurring("b", ["a"])]);
  assert.equal(graph.boxes.length, 2);
});

test("two tasks that exclude each other are joined once", () => {
  assert.equal(layout([recurring("a", [], ["b"]), recurring("b", [], ["a"])]).edges.length, 1);
});

test("a pool's past is made of decisions, then of samples", () => {
  const at = Date.parse(second(0)) / 1000;
  const sample = {
    at: at + 30,
    queued: 0,
    running: 0,
    workers: 4,
    perMinute: 0,
    failed: 0,
    wait: null,
    queues: {},
    pools: { images: { wanted: 4, workers: 4, busy: 3, load: 9 } },
  };
  const past = history(pool("images"), [decision(second(10), 1, 4), decision(second(5), 1, 1)], [sample], null);
  assert.deepEqual(
    past.times.map((time) => time - at),
    [5, 6, 10, 11, 30],
  );
  assert.deepEqual(past.wanted, [1, 1, 4, 4, 4]);
  assert.deepEqual(past.actual, [1, 1, 1, 4, 4]);
  assert.deepEqual(past.busy, [null, null, null, null, 3]);
});

test("the reason of a decision is what stands behind its colon", () => {
  const text = "images 4 -> 6: oldest wait 3.1 s of 10 s";
  assert.equal(reasonOf({ pool: "images", from: 4, to: 6, text }), "oldest wait 3.1 s of 10 s");
  assert.equal(reasonOf({ pool: "images", from: 1, to: 1, text: "images 1: at its minimum" }), "at its minimum");
  assert.equal(reasonOf({ pool: "mail", from: 1, to: 1, text: "something else" }), "something else");
});

test("the running minute counts with the one before it, as in the server's rates", () => {
  assert.deepEqual(perMinutes([60, 30], 60, 30), [60, 60]);
  assert.deepEqual(perMinutes([60, 0, 773], 60, 18), [60, 0, (773 * 60) / 78]);
  assert.deepEqual(perMinutes([90, 1], 60, 0), [90, 91]);
  assert.deepEqual(perMinutes([300, 30], 300, 30), [60, 60]);
});

test("a worker's end is told in the unit of each budget", () => {
  const left = { jobs_left: 1200, memory_left: null, age_left: 90 };
  assert.equal(countdown(left).replaceAll("\u202f", " "), "in 1,200 jobs or in 1 min 30 s");
  assert.equal(countdown({ jobs_left: null, memory_left: null, age_left: null }), "–");
  assert.equal(countdown(null), "–");
});

test("a small curve of nothing is flat", () => {
  assert.equal(sparkPath([0, 0, null], 10, 10), "M0.0 8.5L5.0 8.5L10.0 8.5");
});
