import assert from "node:assert/strict";
import { test } from "node:test";
import { drainQuestion } from "../src/pages/nodes/drain";
import { boundsQuestion } from "../src/pages/scaling/bounds_question";
import { node, pool } from "./made";

const text = (question: { text: readonly string[] } | null) => (question?.text ?? []).join(" ");

test("draining a node tells which queues stay without one, and when the page ends with it", () => {
  const mine = node("a", { queues: ["mail", "images"], running: 2, host: "alpha", pid: 7 });
  const other = node("b", { queues: ["mail"] });
  const alone = text(drainQuestion(mine, [mine, other], { host: "alpha", pid: 7 }));
  assert(/2 jobs/.test(alone));
  assert(/No other node serves images:/.test(alone));
  assert(/This dashboard runs beside that node and ends with it/.test(alone));
  const both = text(drainQuestion(mine, [mine, node("c", { queues: ["mail", "images"] })], { host: "beta", pid: 7 }));
  assert(!/No other node|dashboard/.test(both));
  const silent = node("d", { queues: ["images"], state: "silent" });
  assert(/No other node serves images/.test(text(drainQuestion(mine, [mine, other, silent], null))));
});

test("far more workers than cores are asked about, and fewer than before never", () => {
  const nodes = [node("a", { cpu: { used: 0, limit: 2 } }), node("b", { cpu: { used: 0, limit: 64 } })];
  const wide = pool("images", { max: 4, nodes: ["a", "b"] });
  assert(/257 workers on a machine of 2 cores/.test(text(boundsQuestion(wide, 257, nodes))));
  assert.equal(boundsQuestion(wide, 8, nodes), null);
  assert.equal(boundsQuestion(pool("images", { max: 300, nodes: ["a"] }), 257, nodes), null);
  assert.equal(boundsQuestion(pool("images", { nodes: ["c"] }), 257, nodes), null);
});
