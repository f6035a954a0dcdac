// Puts what the stream says together: an overview with a delta, rows with fresher rows. Pure; the old value
// is never changed, and a part that did not change stays the same object, so that nothing redraws for it.
import type { Delta, Happening, JobRow, Overview } from "./types";

function mergeBy<T>(
  old: readonly T[],
  fresh: readonly T[] | undefined,
  gone: readonly string[] | undefined,
  key: (item: T) => string,
): T[] {
  if (!fresh?.length && !gone?.length) return old as T[];
  const changed = new Map((fresh ?? []).map((item) => [key(item), item]));
  const removed = new Set(gone ?? []);
  const merged: T[] = [];
  for (const item of old) {
    const name = key(item);
    const newer = changed.get(name);
    changed.delete(name);
    if (newer !== undefined) merged.push(newer);
    else if (!removed.has(name)) merged.push(item);
  }
  const added = [...changed.values()];
  if (!added.length) return merged;
  return [...merged, ...added].sort((one, other) => (key(one) < key(other) ? -1 : 1));
}

/** The overview after a delta. Lists of items are merged by name; everything else comes whole. */
export function applyDelta(old: Overview, delta: Delta): Overview {
  const { queues, pools, nodes, removed, ...whole } = delta;
  return {
    ...old,
    ...whole,
    queues: mergeBy(old.queues, queues, removed?.queues, (item) => item.queue),
    pools: mergeBy(old.pools, pools, removed?.pools, (item) => item.pool),
    nodes: mergeBy(old.nodes, nodes, removed?.nodes, (item) => item.id),
  };
}

/** Events newest first, each number once, at most `most`. */
export function addHappening(old: readonly Happening[], fresh: Happening, most = 200): Happening[] {
  if (old.some((one) => one.number === fresh.number)) return old as Happening[];
  const at = old.findIndex((one) => one.number < fresh.number);
  const place = at < 0 ? old.length : at;
  return [...old.slice(0, place), fresh, ...old.slice(place)].slice(0, most);
}

/**
 * The first page read again, over a longer list: rows it names take their new content, newer ones come on top.
 * Rows inside the span of the fresh page that it no longer names are gone from this filter, and leave.
 */
export function freshen(old: readonly JobRow[], page: readonly JobRow[], isWhole: boolean): JobRow[] {
  const oldest = page[page.length - 1];
  if (oldest === undefined) return isWhole ? [] : (old as JobRow[]);
  if (isWhole) return [...page];
  const named = new Set(page.map((row) => row.id));
  const rest = old.filter((row) => !named.has(row.id) && isBehind(row, oldest));
  return [...page, ...rest];
}

function isBehind(row: JobRow, other: JobRow): boolean {
  return row.id < other.id; // ids sort by time; the list is newest first
}

/** A further page behind a list; a row that is already there is not repeated. */
export function append(old: readonly JobRow[], page: readonly JobRow[]): JobRow[] {
  const known = new Set(old.map((row) => row.id));
  return [...old, ...page.filter((row) => !known.has(row.id))];
}
