// A pool over the last hour, out of what is known: the decisions of that time, the open jobs of its queues minute
// by minute, and second by second what this page has heard since it was opened. Pure.
import type { Samples } from "../../live/samples";
import type { Line } from "../../parts/chart_options";
import type { Decision, Pool, Statistics } from "../../wire/types";

export interface PoolHistory {
  times: number[];
  wanted: (number | null)[];
  actual: (number | null)[];
  busy: (number | null)[];
  load: (number | null)[];
}

interface Point {
  at: number;
  wanted: number | null;
  actual: number | null;
  busy: number | null;
  load: number | null;
}

const START = 1; // seconds in which a decision shows in the workers; samples know it better

export function history(
  pool: Pool,
  decisions: readonly Decision[],
  samples: Samples,
  hour: Statistics | null,
): PoolHistory {
  const mine = samples.flatMap((one) =>
    one.pools[pool.pool] === undefined ? [] : [sampled(one.at, one.pools[pool.pool]!)],
  );
  const first = mine[0]?.at ?? Infinity;
  const past = [...decided(pool.pool, decisions), ...loaded(pool, hour)];
  const points = [...past.filter((one) => one.at < first), ...mine].sort((one, other) => one.at - other.at);
  const from = start(decisions, first);
  return columns(held(points).filter((one) => one.at >= from));
}

/** The same for every pool: a minute before the first thing known, at most an hour back. */
function start(decisions: readonly Decision[], first: number): number {
  const decided_at = decisions.map((one) => Date.parse(one.at) / 1000);
  const newest = Math.max(first === Infinity ? -Infinity : first, ...decided_at);
  return Math.max(Math.min(first, ...decided_at) - 60, newest - 3600);
}

function sampled(at: number, one: Samples[number]["pools"][string]): Point {
  return { at, wanted: one.wanted, actual: one.workers, busy: one.busy, load: one.load };
}

function decided(pool: string, decisions: readonly Decision[]): Point[] {
  return decisions
    .filter((one) => one.pool === pool && !one.shadow)
    .flatMap((one) => {
      const at = Date.parse(one.at) / 1000;
      return [
        { at, wanted: one.to, actual: one.from, busy: null, load: null },
        { at: at + START, wanted: one.to, actual: one.to, busy: null, load: null },
      ];
    });
}

function loaded(pool: Pool, hour: Statistics | null): Point[] {
  if (hour === null) return [];
  const lines = pool.queues.flatMap((queue) => hour.queues[queue]?.open ?? []);
  if (!lines.length) return [];
  const sums = hour.times.map((_, place) =>
    pool.queues.reduce((sum, queue) => sum + (hour.queues[queue]?.open[place] ?? 0), 0),
  );
  return hour.times.map((time, place) => ({
    at: time + hour.step, // open jobs are counted at the end of a step
    wanted: null,
    actual: null,
    busy: null,
    load: sums[place]!,
  }));
}

/** Workers stay until something says otherwise; load is a curve, and needs no filling. */
function held(points: readonly Point[]): Point[] {
  let last: Point | null = null;
  return points.map((one) => {
    last = { ...one, wanted: one.wanted ?? last?.wanted ?? null, actual: one.actual ?? last?.actual ?? null };
    return last;
  });
}

function columns(points: readonly Point[]): PoolHistory {
  return {
    times: points.map((one) => one.at),
    wanted: points.map((one) => one.wanted),
    actual: points.map((one) => one.actual),
    busy: points.map((one) => one.busy),
    load: points.map((one) => one.load),
  };
}

export function loadLine(past: PoolHistory): Line {
  return { label: "jobs waiting or running", tone: "violet", values: past.load, fill: true };
}
