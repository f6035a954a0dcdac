// The life of a job drawn to scale: hatched while it waited, solid while it ran, a sign for how each run ended.
import { useNow } from "../../live/clock";
import { Card } from "../../parts/card";
import { Moment } from "../../parts/when";
import { span } from "../../text/numbers";
import type { JobDetail } from "../../wire/types";
import { lifeOf, type Stretch } from "./spans";

export function Timeline({ job }: { job: JobDetail }) {
  const now = useNow();
  const life = lifeOf(job, now);
  return (
    <Card title="Timeline" aside={<span class="hint">{span(life.seconds)} in all</span>}>
      <ol class="timeline">
        {life.stretches.map((stretch, place) => (
          <li
            key={place}
            class={`stretch ${tone(stretch)}`}
            style={{ left: `${stretch.start * 100}%`, width: `${stretch.width * 100}%` }}
            title={words(stretch)}
          >
            <span class="unseen">{words(stretch)}</span>
            {stretch.width > 0.12 ? (
              <span aria-hidden="true" class="stretch-text">
                {stretch.kind === "run" ? stretch.label : "waiting"} · {span(stretch.seconds)}
              </span>
            ) : null}
          </li>
        ))}
      </ol>
      <div class="timeline-ends">
        <span>
          created <Moment at={job.created_at} />
        </span>
        <span>
          {job.finished_at === null ? (
            "now"
          ) : (
            <>
              ended <Moment at={job.finished_at} />
            </>
          )}
        </span>
      </div>
    </Card>
  );
}

function tone(stretch: Stretch): string {
  if (stretch.kind === "wait") return "stretch-wait";
  if (stretch.ended === null) return "stretch-running";
  return stretch.ended === "returned" ? "stretch-ok" : "stretch-failed";
}

function words(stretch: Stretch): string {
  const end = stretch.kind === "run" ? `, ${stretch.ended ?? "still running"}` : "";
  return `${stretch.label}: ${span(stretch.seconds)}${end}`;
}
