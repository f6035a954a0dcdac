// A bulk action, piece by piece: first counted without changing anything, then done in calls of at most 500
// jobs, each followed by a report, until nothing is left or somebody stops it.
import { change } from "../../wire/http";
import type { BulkAnswer } from "../../wire/types";

export type Verb = "cancel" | "replay" | "discard";

export interface Bulk {
  action: Verb;
  ids?: readonly string[];
  filter?: Record<string, unknown>;
  all?: boolean;
}

export interface Report {
  changed: number;
  matched: number;
}

const PIECE = 500;
type Call = (body: Record<string, unknown>) => Promise<BulkAnswer>;

const post: Call = (body) => change<BulkAnswer>("POST", "jobs/bulk", body);

export function countBulk(bulk: Bulk, call: Call = post): Promise<BulkAnswer> {
  return call({ ...bulk, dry_run: true });
}

/** Ends when the server has no cursor left, or when `isStopped` says so. */
export async function runBulk(
  bulk: Bulk,
  report: (so_far: Report) => void,
  isStopped: () => boolean,
  call: Call = post,
): Promise<Report> {
  let so_far: Report = { changed: 0, matched: 0 };
  let cursor: string | null = null;
  do {
    const answer: BulkAnswer = await call({ ...bulk, dry_run: false, limit: PIECE, cursor });
    so_far = { changed: so_far.changed + answer.changed, matched: so_far.matched + answer.matched };
    report(so_far);
    cursor = answer.cursor;
  } while (cursor !== null && !isStopped());
  return so_far;
}
