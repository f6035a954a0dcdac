// The reason in a decision's sentence: what stands behind the colon. Pure.
import type { Decision } from "../../wire/types";

export function reasonOf(decision: Pick<Decision, "pool" | "from" | "to" | "text">): string {
  const starts = [`${decision.pool} ${decision.from} -> ${decision.to}: `, `${decision.pool} ${decision.to}: `];
  const start = starts.find((one) => decision.text.startsWith(one)) ?? "";
  return decision.text.slice(start.length);
}
