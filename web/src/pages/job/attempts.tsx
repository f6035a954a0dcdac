// Every attempt with where it ran, how it ended, and its traceback behind a fold.
import { Badge } from "../../parts/badge";
import { Card } from "../../parts/card";
import { Block, Data } from "../../parts/data";
import { Moment } from "../../parts/when";
import { attemptsInWords } from "../../text/attempts";
import { span } from "../../text/numbers";
import type { Attempt, JobDetail } from "../../wire/types";

export function Attempts({ job }: { job: JobDetail }) {
  if (!job.attempts.length) return null;
  const newest = [...job.attempts].reverse();
  return (
    <Card
      title="Attempts"
      aside={<span class="hint">{attemptsInWords(job)}</span>}
      flush
    >
      <ol class="attempts">
        {newest.map((attempt) => (
          <li key={attempt.number}>
            <AttemptLine attempt={attempt} />
            {attempt.traceback === null ? null : (
              <details>
                <summary>Traceback</summary>
                <Block text={attempt.traceback} label={`traceback of attempt ${attempt.number}`} />
              </details>
            )}
          </li>
        ))}
      </ol>
    </Card>
  );
}

function AttemptLine({ attempt }: { attempt: Attempt }) {
  return (
    <div class="attempt-line">
      <span class="attempt-number">{attempt.number}</span>
      <Ended attempt={attempt} />
      <span class="attempt-error mono">
        {attempt.error === null ? null : (
          <Data text={attempt.message ? `${attempt.error}: ${attempt.message}` : attempt.error} most={300} />
        )}
      </span>
      <span class="faint attempt-where">
        {attempt.node === null ? null : (
          <>
            <Data text={attempt.node} most={60} />
            {attempt.worker === null ? null : ` · worker ${attempt.worker}`}
          </>
        )}
      </span>
      <span class="attempt-when">
        <Moment at={attempt.started_at} /> · {span(attempt.run)}
      </span>
    </div>
  );
}

function Ended({ attempt }: { attempt: Attempt }) {
  if (attempt.ended === null) return <Badge icon="running" tone="accent" word="running" />;
  if (attempt.ended === "returned") return <Badge icon="check" tone="ok" word="returned" />;
  const isMild = ["snoozed", "released", "cancelled", "lost"].includes(attempt.ended);
  return (
    <Badge
      icon={isMild ? "info" : "dead"}
      tone={isMild ? "muted" : "error"}
      word={attempt.ended.replaceAll("_", " ")}
    />
  );
}
