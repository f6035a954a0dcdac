// What a list of jobs is filtered by: read from the address, and written back to it, so that a list can be sent
// to a colleague. Pure.
import type { RouteQuery } from "../../live/route";
import type { Query } from "../../wire/http";
import type { JobState } from "../../wire/types";

export const STATES: readonly JobState[] = [
  "queued",
  "running",
  "scheduled",
  "blocked",
  "completed",
  "dead",
  "cancelled",
];
export const SINCE: readonly (readonly [string, string])[] = [
  ["", "Any time"],
  ["600", "Last 10 min"],
  ["3600", "Last hour"],
  ["86400", "Last day"],
  ["604800", "Last week"],
];

export interface JobFilter {
  state: JobState[];
  queue: string;
  task: string;
  text: string;
  since: string;
}

export function filterOf(query: Record<string, string[]>): JobFilter {
  const one = (name: string) => query[name]?.[0] ?? "";
  const named = query["state"] ?? [];
  return {
    state: STATES.filter((state) => named.includes(state)),
    queue: one("queue"),
    task: one("task"),
    text: one("text"),
    since: SINCE.some(([value]) => value === one("since")) ? one("since") : "",
  };
}

export function addressOf(filter: JobFilter): RouteQuery {
  return { ...filter };
}

/** The filter in the server's words; `now` is rounded so that the same list keeps the same address. */
export function queryOf(filter: JobFilter, now: number): Query {
  const { since, ...rest } = filter;
  const after = since ? new Date(now - Number(since) * 1000).toISOString() : null;
  return { ...rest, created_after: after };
}

/** The filter in the words of a bulk action. */
export function bulkFilter(filter: JobFilter, now: number): Record<string, unknown> {
  const { created_after, state, ...rest } = queryOf(filter, now);
  const named = Object.entries({ ...rest, created_after }).filter(([, value]) => value);
  return { ...Object.fromEntries(named), ...((state as string[]).length ? { state } : {}) };
}

export function isEmpty(filter: JobFilter): boolean {
  return !filter.state.length && !filter.queue && !filter.task && !filter.text && !filter.since;
}
