// The rest of what is known of a job.
import { href } from "../../live/route";
import { StateBadge } from "../../parts/badge";
import { Card } from "../../parts/card";
import { Data } from "../../parts/data";
import { Facts } from "../../parts/facts";
import { Ago, Moment } from "../../parts/when";
import { attemptsInWords } from "../../text/attempts";
import { span } from "../../text/numbers";
import type { JobDetail } from "../../wire/types";
import { pretty } from "./pretty";

export function JobFacts({ job }: { job: JobDetail }) {
  const text = (value: string | null) => (value === null ? null : <Data text={value} most={200} />);
  const { options } = job;
  return (
    <Card title="Facts">
      <Facts
        facts={[
          [
            "Queue",
            <a key="queue" href={href("queues", [job.queue])}>
              {text(job.queue)}
            </a>,
          ],
          ["Priority", job.priority],
          ["Created", <Moment key="created" at={job.created_at} />],
          ["Due", job.run_at === null ? null : <Ago key="due" at={job.run_at} />],
          ["Waited", span(job.wait)],
          ["Ran", span(job.run)],
          ["Expires", job.expires_at === null ? null : <Ago key="expires" at={job.expires_at} />],
          ["Node", text(job.node)],
          ["Attempts", attemptsInWords(job)],
          ["Crashes, lost", `${job.crashes}, ${job.lost}`],
          ["Timeout", typeof options["timeout"] === "number" ? span(options["timeout"]) : null],
          ["Resources", options["resources"] ? <Data key="resources" text={pretty(options["resources"])} /> : null],
          ["Unique", text(job.unique)],
          [
            "Slots",
            job.slots.length ? (
              <Data key="slots" text={job.slots.map((slot) => `${slot.name} (${slot.capacity})`).join(", ")} />
            ) : null,
          ],
          ["Waits for slot", text(job.parked)],
          [
            "Recurring task",
            !job.recurring ? null : (
              <a key="recurring" href={href("recurring", [job.recurring])}>
                {text(job.recurring)}
              </a>
            ),
          ],
          ["Depends on", job.parents.length ? <Parents key="parents" job={job} /> : null],
          ["Token", job.token],
        ]}
      />
    </Card>
  );
}

function Parents({ job }: { job: JobDetail }) {
  return (
    <ul class="parents">
      {job.parents.map((parent) => (
        <li key={parent.id}>
          <a href={href("jobs", [parent.id])}>
            <Data text={parent.task} most={60} />
          </a>{" "}
          <StateBadge state={parent.state} />
        </li>
      ))}
    </ul>
  );
}
