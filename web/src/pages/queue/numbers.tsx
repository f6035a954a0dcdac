// A queue's counts by state, each a way to the jobs it counts.
import { href } from "../../live/route";
import { StateBadge } from "../../parts/badge";
import { WaitGauge } from "../../parts/gauges";
import { count, exact, rate, span } from "../../text/numbers";
import type { JobState, Queue } from "../../wire/types";

const ORDER: readonly JobState[] = ["queued", "running", "scheduled", "blocked", "completed", "dead", "cancelled"];

export function QueueNumbers({ queue }: { queue: Queue }) {
  const { recent } = queue;
  return (
    <>
      <ul class="state-strip" aria-label="Jobs by state">
        {ORDER.map((state) => (
          <li key={state}>
            <a href={href("jobs", [], { queue: queue.queue, state })}>
              <b title={exact(queue.states[state])}>{count(queue.states[state])}</b>
              <StateBadge state={state} />
            </a>
          </li>
        ))}
      </ul>
      <div class="strip">
        <span>
          <small>Oldest wait</small>
          <WaitGauge wait={queue.oldest} limit={queue.max_wait} />
        </span>
        <span>
          <small>Throughput, last minute</small>
          <b>{rate(recent.per_minute)}</b>
        </span>
        <span>
          <small>Wait, median and p95, last 5 min</small>
          <b>
            {span(recent.wait_p50)} · {span(recent.wait_p95)}
          </b>
        </span>
        <span>
          <small>Run, median and p95, last 5 min</small>
          <b>
            {span(recent.run_p50)} · {span(recent.run_p95)}
          </b>
        </span>
        <span>
          <small>Retried, dead, last 5 min</small>
          <b>
            {count(recent.retried)} · {count(recent.dead)}
          </b>
        </span>
      </div>
    </>
  );
}
