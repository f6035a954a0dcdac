// The causes of death, biggest first, each with what can be done about all of its jobs.
import { href } from "../../live/route";
import { Badge } from "../../parts/badge";
import { Button } from "../../parts/button";
import { Data, Name } from "../../parts/data";
import { Ago } from "../../parts/when";
import { count, exact } from "../../text/numbers";
import type { Cause } from "../../wire/types";
import type { Bulk, Verb } from "../jobs/bulk";

interface Props {
  causes: readonly Cause[];
  onAsk: (bulk: Bulk, subject: string) => void;
}

export function CauseList({ causes, onAsk }: Props) {
  const most = Math.max(...causes.map((cause) => cause.count), 1);
  return (
    <ul class="causes">
      {causes.map((cause) => (
        <CauseItem key={`${cause.cause}/${cause.queue}`} cause={cause} most={most} onAsk={onAsk} />
      ))}
    </ul>
  );
}

function CauseItem({ cause, most, onAsk }: { cause: Cause; most: number; onAsk: Props["onAsk"] }) {
  const ask = (action: Verb) =>
    onAsk(
      { action, filter: { ...cause.filter, state: ["dead"] } },
      `${cause.task}: ${cause.error ?? cause.reason ?? "dead"}`,
    );
  return (
    <li class="cause">
      <span class="cause-count">
        <b title={exact(cause.count)}>{count(cause.count)}</b>
        <span class="bar tone-error" aria-hidden="true">
          <span class="bar-fill" style={{ width: `${(cause.count / most) * 100}%` }} />
        </span>
      </span>
      <div class="cause-what">
        <p class="cause-title">
          <b class="mono tone-error">
            <Name text={cause.error ?? cause.reason ?? "dead"} />
          </b>
          {cause.reason && cause.reason !== "failed" && cause.error ? (
            <Badge icon="info" tone="muted" word={cause.reason.slice(0, 40)} />
          ) : null}
        </p>
        {cause.message ? (
          <p class="cause-message mono">
            <Data text={cause.message} most={300} />
          </p>
        ) : null}
        <p class="faint cause-where">
          <Name text={cause.task} /> in{" "}
          <a href={href("queues", [cause.queue])}>
            <Data text={cause.queue} most={60} />
          </a>
          {" · "}last <Ago at={cause.last_at} />, first <Ago at={cause.first_at} />
          {" · "}
          <a href={href("jobs", [cause.example])}>an example</a>
        </p>
      </div>
      <span class="cause-acts">
        <Button icon="retry" onPress={() => ask("replay")}>
          Replay
        </Button>
        <Button icon="trash" tone="quiet" label="Discard these" onPress={() => ask("discard")} />
      </span>
    </li>
  );
}
