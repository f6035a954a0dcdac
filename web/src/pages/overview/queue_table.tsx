// Every queue in a row: what waits, how long against what was allowed, how much gets done, by how many.
import { useCell } from "../../live/cell";
import { feed } from "../../live/feed";
import { href } from "../../live/route";
import { HealthBadge, Badge } from "../../parts/badge";
import { Data } from "../../parts/data";
import { CrewGauge, WaitGauge } from "../../parts/gauges";
import { Spark } from "../../parts/spark";
import { count, exact, rate, span } from "../../text/numbers";
import type { Pool, Queue, Statistics } from "../../wire/types";

interface Props {
  queues: readonly Queue[];
  pools: readonly Pool[];
  hour: Statistics | null;
}

export function QueueTable({ queues, pools, hour }: Props) {
  const samples = useCell(feed, (value) => value.samples).slice(-180);
  return (
    <table class="sheet queues">
      <caption class="unseen">Queues with depth, wait, throughput, workers and failures</caption>
      <thead>
        <tr>
          <th scope="col">Queue</th>
          <th scope="col" class="number">
            Waiting
          </th>
          <th scope="col">Oldest wait</th>
          <th scope="col">Throughput</th>
          <th scope="col">Workers</th>
          <th scope="col" class="number">
            Run, p95
          </th>
          <th scope="col" class="number">
            Failures
          </th>
        </tr>
      </thead>
      <tbody>
        {queues.map((queue) => (
          <QueueRow
            key={queue.queue}
            queue={queue}
            pools={pools.filter((pool) => pool.queues.includes(queue.queue))}
            past={
              hour?.queues[queue.queue]?.completed ?? samples.map((one) => one.queues[queue.queue]?.perMinute ?? null)
            }
          />
        ))}
      </tbody>
    </table>
  );
}

function QueueRow({ queue, pools, past }: { queue: Queue; pools: readonly Pool[]; past: readonly (number | null)[] }) {
  const { recent, states } = queue;
  const sick = pools.find((pool) => pool.status !== "ok");
  return (
    <tr>
      <th scope="row" data-label="Queue">
        <a href={href("queues", [queue.queue])}>
          <Data text={queue.queue} most={80} />
        </a>
        {queue.paused ? <Badge icon="pause" tone="warn" word="paused" /> : null}
        {sick === undefined ? null : <HealthBadge status={sick.status} />}
      </th>
      <td class="number" data-label="Waiting">
        <b title={exact(states.queued)}>{count(states.queued)}</b>
        <small class="faint" title="Taken by a node: running, or about to begin">
          {count(states.running)} claimed
        </small>
      </td>
      <td data-label="Oldest wait">
        <WaitGauge wait={queue.oldest} limit={queue.max_wait} />
      </td>
      <td data-label="Throughput">
        <span class="with-spark">
          <b>{rate(recent.per_minute)}</b>
          <Spark values={past} tone="ok" />
        </span>
      </td>
      <td data-label="Workers">
        {pools.length ? (
          pools.map((pool) => <CrewGauge key={pool.pool} pool={pool} />)
        ) : (
          <span class="faint">nobody serves it</span>
        )}
      </td>
      <td class="number" data-label="Run, p95">
        {span(recent.run_p95)}
      </td>
      <td class="number" data-label="Failures">
        <Failures queue={queue} />
      </td>
    </tr>
  );
}

function Failures({ queue }: { queue: Queue }) {
  const { dead } = queue.states;
  return (
    <>
      {dead ? (
        <a class="tone-error" href={href("dead", [], { queue: queue.queue })}>
          {count(dead)} dead
        </a>
      ) : (
        <span class="faint">0 dead</span>
      )}
      <small class="faint">{count(queue.recent.retried)} retried</small>
    </>
  );
}
