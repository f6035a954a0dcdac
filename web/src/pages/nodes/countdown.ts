// When a worker will be replaced, whichever budget ends first is said in its own unit. Pure.
import { exact, size, span } from "../../text/numbers";
import type { WorkerRow } from "../../wire/types";

export function countdown(recycle: WorkerRow["recycle"]): string {
  if (recycle === null) return "–";
  const parts = [
    recycle.jobs_left === null ? "" : `in ${exact(recycle.jobs_left)} jobs`,
    recycle.age_left === null ? "" : `in ${span(Math.max(recycle.age_left, 0))}`,
    recycle.memory_left === null ? "" : `at +${size(Math.max(recycle.memory_left, 0))}`,
  ].filter(Boolean);
  return parts.length ? parts.join(" or ") : "–";
}
