// Two small gauges: a wait against its limit, and the workers of a pool between least and most.
import { span } from "../text/numbers";
import type { Pool } from "../wire/types";
import { Icon } from "./icon";

/** Green well within, amber from 70 %, red and a sign beyond the limit. */
export function WaitGauge({ wait, limit }: { wait: number | null; limit: number | null }) {
  const share = limit ? Math.min((wait ?? 0) / limit, 1) : 0;
  const isOver = limit !== null && wait !== null && wait > limit;
  const tone = isOver ? "error" : share > 0.7 ? "warn" : "ok";
  return (
    <span class={`wait-gauge tone-${tone}`}>
      <span class="wait-numbers">
        {isOver ? <Icon name="warning" label="over the limit:" /> : null}
        <b>{span(wait ?? 0)}</b>
        {limit === null ? null : <span class="faint"> of {span(limit)}</span>}
      </span>
      {limit === null ? null : (
        <span class="bar" aria-hidden="true">
          <span class="bar-fill" style={{ width: `${Math.max(share * 100, 1.5)}%` }} />
        </span>
      )}
    </span>
  );
}

const MOST_BLOCKS = 24;

/** A block for each worker: filled is busy, hollow idle, a dot what it may still grow to. */
export function CrewGauge({ pool }: { pool: Pool }) {
  const most = pool.max * Math.max(pool.nodes.length, 1);
  const words = `${pool.busy} of ${pool.workers} workers busy, ${pool.min} to ${pool.max} allowed`;
  return (
    <span class="crew" role="img" aria-label={words} title={words}>
      <span class="crew-numbers">
        <b>{pool.busy}</b>
        <span class="faint">/{pool.workers}</span>
        <span class="crew-range">
          {pool.min}–{pool.max}
        </span>
      </span>
      <span class="crew-blocks">
        {most <= MOST_BLOCKS ? <Blocks pool={pool} most={most} /> : <Share pool={pool} most={most} />}
      </span>
    </span>
  );
}

function Blocks({ pool, most }: { pool: Pool; most: number }) {
  const total = Math.max(most, pool.workers);
  const kind = (place: number) =>
    place < pool.busy ? "busy" : place < pool.busy + pool.idle ? "idle" : place < pool.workers ? "starting" : "room";
  return (
    <>
      {Array.from({ length: total }, (_, place) => (
        <span key={place} class={`crew-block crew-${kind(place)}`} />
      ))}
    </>
  );
}

function Share({ pool, most }: { pool: Pool; most: number }) {
  return (
    <span class="bar crew-bar">
      <span class="bar-fill bar-back" style={{ width: `${(pool.workers / most) * 100}%` }} />
      <span class="bar-fill" style={{ width: `${(pool.busy / most) * 100}%` }} />
    </span>
  );
}
