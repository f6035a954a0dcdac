// The last ten minutes second by second, kept in the page: what live charts and small curves are drawn from.
// Pure: adding a sample gives a new value.
import type { Overview } from "../wire/types";

export interface PoolSample {
  wanted: number | null;
  workers: number;
  busy: number;
  load: number;
}

export interface Sample {
  at: number; // unix seconds
  queued: number;
  running: number;
  workers: number;
  perMinute: number | null;
  failed: number | null;
  wait: number | null;
  queues: Record<string, { open: number; wait: number | null; perMinute: number }>;
  pools: Record<string, PoolSample>;
}

export type Samples = readonly Sample[];

export const emptySamples = (): Samples => [];
const KEPT = 600; // seconds

export function sampleOf(overview: Overview): Sample {
  const { totals } = overview;
  return {
    at: Date.parse(overview.at) / 1000,
    queued: totals.queued,
    running: totals.begun,
    workers: totals.workers,
    perMinute: totals.per_minute,
    failed: totals.failed_per_minute,
    wait: totals.wait_p95,
    queues: Object.fromEntries(
      overview.queues.map((item) => [
        item.queue,
        {
          open: item.states.queued + item.states.running,
          wait: item.oldest,
          perMinute: item.recent.per_minute,
        },
      ]),
    ),
    pools: Object.fromEntries(
      overview.pools.map((item) => [
        item.pool,
        {
          wanted: item.wanted,
          workers: item.workers,
          busy: item.busy,
          load: (item.waiting ?? 0) + item.running,
        },
      ]),
    ),
  };
}

/** Adds a sample; one of the same second replaces, one from before the last starts over (another server's clock). */
export function addSample(samples: Samples, sample: Sample): Samples {
  const last = samples[samples.length - 1];
  if (last !== undefined && sample.at < last.at - 5) return [sample];
  const kept = samples.filter((one) => one.at > sample.at - KEPT && one.at < sample.at - 0.4);
  return [...kept, sample];
}
