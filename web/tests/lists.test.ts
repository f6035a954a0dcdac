import assert from "node:assert/strict";
import { test } from "node:test";
import { href, parseRoute } from "../src/live/route";
import { addSample, sampleOf } from "../src/live/samples";
import { runBulk } from "../src/pages/jobs/bulk";
import { verbsFor } from "../src/pages/jobs/verbs";
import { bulkFilter, filterOf, isEmpty, queryOf } from "../src/pages/jobs/filter";
import { foldEqual } from "../src/pages/overview/folding";
import { visibleRows } from "../src/parts/window";
import { withQuery } from "../src/wire/http";
import type { BulkAnswer } from "../src/wire/types";
import { happening, overview, pool, queue } from "./made";

test("of a hundred thousand rows only those in sight are drawn, and the list keeps its height", () => {
  for (const top of [200, 0, -44 * 50_000, -44 * 99_990, -1e9]) {
    const view = visibleRows(100_000, 44, top, 900);
    assert(view.last - view.first < 60);
    assert.equal(view.before + (view.last - view.first) * 44 + view.after, 100_000 * 44);
  }
  assert.equal(visibleRows(100_000, 44, -44 * 50_000, 900).first, 49_992);
  assert.deepEqual(visibleRows(0, 44, 0, 900), { first: 0, last: 0, before: 0, after: 0 });
});

test("an address survives whatever a name may hold", () => {
  for (const name of ["a/b", "50%", "?x=1", "#", "ü \u202e", "..", "%2F"]) {
    const parsed = parseRoute(href("queues", [name], { text: name }));
    assert.deepEqual([parsed.page, parsed.rest, parsed.query["text"]], ["queues", [name], [name]]);
  }
  assert.equal(parseRoute("").page, "overview");
  assert.deepEqual(parseRoute("#/jobs/%E0%A4%A").rest, ["%E0%A4%A"]);
});

test("a filter goes through the address and back, and drops what it does not know", () => {
  const filter = filterOf(
    parseRoute(href("jobs", [], { state: ["dead", "queued"], queue: "mail", text: "a b" })).query,
  );
  assert.deepEqual(filter, { state: ["queued", "dead"], queue: "mail", task: "", text: "a b", since: "" });
  assert(isEmpty(filterOf({ state: ["nonsense"], since: ["nonsense"] })));
  assert.deepEqual(bulkFilter(filter, 0), { queue: "mail", text: "a b", state: ["queued", "dead"] });
  const hour = queryOf({ ...filter, since: "3600" }, Date.parse("2026-11-16T12:00:00Z"));
  assert.equal(hour["created_after"], "2026-11-16T11:00:00.000Z");
});

test("a query leaves out what is empty and repeats lists", () => {
  assert.equal(
    withQuery("jobs", { state: ["dead", "queued"], queue: "", limit: 5, cursor: null }),
    "jobs?state=dead&state=queued&limit=5",
  );
});

test("only actions that can apply are offered", () => {
  const none = filterOf({});
  assert.deepEqual(verbsFor({ ...none, state: ["dead"] }, false), ["replay", "discard"]);
  assert.deepEqual(verbsFor({ ...none, state: ["queued"] }, false), ["cancel"]);
  assert.deepEqual(verbsFor(none, true), ["replay", "cancel", "discard"]);
  assert.deepEqual(verbsFor(none, false), []);
});

function answers(...cursors: (string | null)[]): [(body: Record<string, unknown>) => Promise<BulkAnswer>, unknown[]] {
  const asked: unknown[] = [];
  const call = (body: Record<string, unknown>) => {
    asked.push(body["cursor"]);
    const cursor = cursors.shift() ?? null;
    return Promise.resolve({
      action: "replay",
      dry_run: false,
      matched: 500,
      changed: 498,
      scanned: 500,
      cursor,
      sample: [],
    });
  };
  return [call, asked];
}

test("a bulk action follows the cursor to its end, with a report after each piece", async () => {
  const [call, asked] = answers("a", "b", null);
  const reports: number[] = [];
  const whole = await runBulk(
    { action: "replay", filter: {} },
    (one) => reports.push(one.changed),
    () => false,
    call,
  );
  assert.deepEqual(asked, [null, "a", "b"]);
  assert.deepEqual(reports, [498, 996, 1494]);
  assert.deepEqual(whole, { changed: 1494, matched: 1500 });
});

test("a bulk action that is stopped ends after its piece", async () => {
  const [call, asked] = answers("a", "b", null);
  await runBulk(
    { action: "replay", filter: {} },
    () => undefined,
    () => asked.length > 1,
    call,
  );
  assert.deepEqual(asked, [null, "a"]);
});

test("neighbours that say the same are one event with a number", () => {
  const folded = foldEqual([happening(4, "x"), happening(3, "x"), happening(2, "y"), happening(1, "x")]);
  assert.deepEqual(
    folded.map((one) => [one.text, one.folded]),
    [
      ["x", 1],
      ["y", 0],
      ["x", 0],
    ],
  );
});

test("samples cover ten minutes, one for a moment, and start over when the clock does", () => {
  const at = (second: number) =>
    sampleOf(
      overview({
        at: new Date(second * 1000).toISOString(),
        queues: [queue("mail", 3)],
        pools: [pool("mail", { waiting: 4, running: 2 })],
      }),
    );
  let samples = addSample([], at(1000));
  for (let second = 1001; second < 1700; second += 1) samples = addSample(samples, at(second));
  assert.equal(samples.length, 600);
  assert.equal(samples[0]?.pools["mail"]?.load, 6);
  assert.equal(samples[0]?.queues["mail"]?.perMinute, 60);
  assert.equal(addSample(samples, at(1699.2)).length, 600, "the same second again");
  assert.equal(addSample(samples, at(5)).length, 1);
});
