import assert from "node:assert/strict";
import { test } from "node:test";
import { addHappening, append, applyDelta, freshen } from "../src/wire/merge";
import { happening, overview, pool, queue, row } from "./made";

const at = "2026-11-16T05:31:00.000000Z";

test("a delta replaces what it names and keeps the rest as the same objects", () => {
  const [mail, images] = [queue("mail"), queue("images")];
  const old = overview({ queues: [images, mail], pools: [pool("mail")] });
  const merged = applyDelta(old, { at, queues: [queue("mail", 7)] });
  assert.equal(merged.at, at);
  assert.equal(merged.queues[0], images);
  assert.equal(merged.queues[1]?.states.queued, 7);
  assert.equal(merged.pools, old.pools);
  assert.equal(old.queues[1]?.states.queued, 0, "the old value is left alone");
});

test("a delta adds what is new in its place by name, and removes what is gone", () => {
  const old = overview({ queues: [queue("b"), queue("d")] });
  const merged = applyDelta(old, { at, queues: [queue("c"), queue("a")], removed: { queues: ["d"] } });
  assert.deepEqual(
    merged.queues.map((one) => one.queue),
    ["a", "b", "c"],
  );
});

test("a delta that says only the time changes only the time", () => {
  const old = overview({ queues: [queue("a")] });
  const merged = applyDelta(old, { at });
  assert.equal(merged.queues, old.queues);
  assert.equal(merged.totals, old.totals);
});

test("alerts, totals and decisions come whole", () => {
  const alert = { level: "error" as const, kind: "dead", subject: "a", text: "x", since: null };
  const old = overview({ alerts: [alert] });
  assert.deepEqual(applyDelta(old, { at, alerts: [] }).alerts, []);
  assert.equal(applyDelta(old, { at }).alerts[0], alert);
});

test("events stay newest first, each number once, and no more than wanted", () => {
  let events = [happening(5)];
  for (const number of [3, 5, 7, 4]) events = addHappening(events, happening(number), 3);
  assert.deepEqual(
    events.map((one) => one.number),
    [7, 5, 4],
  );
});

test("a fresh first page updates rows, puts new ones on top, and drops those that left the filter", () => {
  const old = ["9", "8", "7", "3", "2"].map((id) => row(id));
  const page = [row("10"), row("9", { state: "running" }), row("7")];
  const fresh = freshen(old, page, false);
  assert.deepEqual(
    fresh.map((one) => one.id),
    ["10", "9", "7", "3", "2"],
  );
  assert.equal(fresh[1]?.state, "running");
});

test("a first page that is everything replaces the list, an empty one empties it", () => {
  const old = [row("2"), row("1")];
  assert.deepEqual(
    freshen(old, [row("3")], true).map((one) => one.id),
    ["3"],
  );
  assert.deepEqual(freshen(old, [], true), []);
  assert.equal(freshen(old, [], false), old, "a search that found nothing in its first stretch says nothing");
});

test("a further page repeats no row", () => {
  assert.deepEqual(
    append([row("3"), row("2")], [row("2"), row("1")]).map((one) => one.id),
    ["3", "2", "1"],
  );
});
