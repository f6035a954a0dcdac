// Whether a person must be asked before a pool may grow so large: far more workers than its machines have cores
// take their memory, and slow everything else there. Pure.
import type { Question } from "../../live/confirm";
import { many } from "../../text/numbers";
import type { NodeFacts, Pool } from "../../wire/types";

const FAR_BEYOND = 4; // workers for each core

export function boundsQuestion(pool: Pool, most: number, nodes: readonly NodeFacts[]): Question | null {
  const limits = nodes.filter((node) => pool.nodes.includes(node.id)).map((node) => node.cpu?.limit);
  const cores = Math.min(...limits.filter((limit) => typeof limit === "number"));
  if (!Number.isFinite(cores) || most <= pool.max || most <= FAR_BEYOND * Math.max(1, cores)) return null;
  const text =
    `That is ${many(most, "worker")} on a machine of ${many(cores, "core")}. Each is a process with memory of its ` +
    "own; when they all work, everything on that machine slows down.";
  return { title: "So many workers?", text: [text], press: `Set ${most}` };
}
