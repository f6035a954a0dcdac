// A list of jobs that grows as it is scrolled and is freshened at its top. It never asks twice at the same time,
// and an answer to an older filter is dropped.
import { useEffect, useRef, useState } from "preact/hooks";
import { kept, useKept } from "../../live/entries";
import { append, freshen } from "../../wire/merge";
import { type Query, read } from "../../wire/http";
import type { JobPage, JobRow } from "../../wire/types";

const PAGE = 100;
const FRESHEN = 3000;
const REACH = 20_000; // jobs looked at for a rare match before somebody must ask for more

export interface JobList {
  rows: readonly JobRow[];
  error: unknown;
  isLoading: boolean;
  isWhole: boolean;
  scanned: number;
  isPaused: boolean;
  goOn: () => void;
  more: () => void;
  reload: () => void;
}

interface Held {
  rows: readonly JobRow[];
  cursor: string | null;
  scanned: number;
  isRead: boolean;
  isThin: boolean; // the last page had nothing, and was not the end
  error: unknown;
}

const NOTHING: Held = { rows: [], cursor: null, scanned: 0, isRead: false, isThin: false, error: null };

type Take = (page: JobPage, old: Held) => Held;

/** Asks for one page at a time; `take` says what becomes of the list. An answer to another filter is dropped. */
function useAsking(query: Query, name: string, setHeld: (change: (old: Held) => Held) => void) {
  const [isLoading, setLoading] = useState(true);
  const wanted = useRef("");
  const isAsking = useRef(false);
  const ask = async (cursor: string | null, take: Take) => {
    if (isAsking.current && wanted.current === name) return;
    wanted.current = name;
    isAsking.current = true;
    setLoading(true);
    let change: (old: Held) => Held;
    try {
      const page = await read<JobPage>("jobs", { ...query, limit: PAGE, cursor });
      change = (old) => take(page, old);
    } catch (error) {
      change = (old) => ({ ...old, error, isRead: true });
    }
    if (wanted.current !== name) return;
    isAsking.current = false;
    setLoading(false);
    setHeld(change);
  };
  return { ask, isLoading, forget: () => void (wanted.current = "") };
}

export function useJobList(query: Query, isStill: boolean): JobList {
  const name = JSON.stringify(query);
  const [held, setHeld] = useKept<Held>("jobs", NOTHING);
  const isBack = useRef(kept("jobs")); // the rows that were there are here again
  const [reach, setReach] = useState(REACH);
  const { ask, isLoading, forget } = useAsking(query, name, setHeld);
  const reload = () => void ask(null, first);
  const more = () => {
    if (held.cursor !== null && held.error === null) void ask(held.cursor, further);
  };

  useEffect(() => {
    if (isBack.current) {
      isBack.current = false;
      void ask(null, again);
      return forget;
    }
    setHeld(NOTHING);
    setReach(REACH);
    reload();
    return forget;
  }, [name]);
  useTurns(isStill ? null : () => void ask(null, again), name);
  useEffect(() => {
    if (isSparse(held) && held.scanned < reach) more(); // a stretch without a match says little
  }, [held, reach]);

  return {
    rows: held.rows,
    error: held.error,
    isLoading: isLoading && !held.rows.length,
    isWhole: held.isRead && held.cursor === null,
    scanned: held.scanned,
    isPaused: isSparse(held) && held.scanned >= reach,
    goOn: () => setReach(held.scanned + REACH),
    more,
    reload,
  };
}

/** Does it every few seconds, while the top of the list is in sight. */
function useTurns(doing: (() => void) | null, name: string): void {
  useEffect(() => {
    if (doing === null) return;
    const timer = window.setInterval(() => {
      if (!document.hidden && window.scrollY < 200) doing();
    }, FRESHEN);
    return () => window.clearInterval(timer);
  }, [name, doing === null]);
}

function isSparse(held: Held): boolean {
  return held.isRead && held.cursor !== null && held.error === null && (held.isThin || held.rows.length < 30);
}

function first(page: JobPage): Held {
  const isThin = page.jobs.length === 0 && page.cursor !== null;
  return { rows: page.jobs, cursor: page.cursor, scanned: page.scanned, isRead: true, isThin, error: null };
}

function further(page: JobPage, old: Held): Held {
  return { ...first(page), rows: append(old.rows, page.jobs), scanned: old.scanned + page.scanned };
}

/** The top read again; the place where the list goes on stays where it was, unless one page says all. */
function again(page: JobPage, old: Held): Held {
  const saysAll = page.cursor === null || (page.jobs.length === PAGE && old.rows.length <= PAGE);
  return saysAll ? first(page) : { ...old, isThin: false, error: null, rows: freshen(old.rows, page.jobs, false) };
}
