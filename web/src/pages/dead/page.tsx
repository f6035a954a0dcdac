// Dead letters: grouped by what killed them, so that one fix is followed by one press.
import { useState } from "preact/hooks";
import { useCell } from "../../live/cell";
import { feed } from "../../live/feed";
import { useResource } from "../../live/resource";
import { href, replace } from "../../live/route";
import { Button } from "../../parts/button";
import { Card, Page } from "../../parts/card";
import { Empty, Loaded } from "../../parts/quiet";
import { exact, many } from "../../text/numbers";
import type { CausePage, JobPage } from "../../wire/types";
import type { Bulk, Verb } from "../jobs/bulk";
import { BulkDialog } from "../jobs/bulk_dialog";
import { Pick } from "../jobs/filters";
import { JobTable } from "../jobs/table";
import { CauseList } from "./cause_list";

interface Asked {
  bulk: Bulk;
  subject: string;
}

export function DeadPage({ query }: { query: Record<string, string[]> }) {
  const queue = query["queue"]?.[0] ?? "";
  const queues = useCell(feed, (value) => value.overview?.queues ?? []).map((item) => item.queue);
  const causes = useResource<CausePage>("dead/causes", { queue }, 5);
  const [asked, setAsked] = useState<Asked | null>(null);
  const all = (action: Verb) => {
    const filter = { state: ["dead"], ...(queue ? { queue } : {}) };
    setAsked({ bulk: { action, filter }, subject: queue ? `All dead jobs of queue ${queue}` : "All dead jobs" });
  };
  const hasSome = (causes.data?.causes.length ?? 0) > 0;
  return (
    <Page
      title="Dead letters"
      actions={
        <>
          <Pick
            label="Queue"
            all="All queues"
            value={queue}
            options={queues}
            onChange={(value) => replace(href("dead", [], { queue: value }))}
          />
          <Button icon="retry" tone="primary" disabled={!hasSome} onPress={() => all("replay")}>
            Replay all
          </Button>
          <Button icon="trash" disabled={!hasSome} onPress={() => all("discard")}>
            Discard all
          </Button>
        </>
      }
    >
      <Loaded resource={causes} lines={6}>
        {(data) =>
          data.causes.length ? (
            <>
              <Card title="By cause" flush aside={<Scope page={data} />}>
                <CauseList causes={data.causes} onAsk={(bulk, subject) => setAsked({ bulk, subject })} />
              </Card>
              <Latest queue={queue} />
            </>
          ) : (
            <Empty icon="check" title="No dead jobs">
              A job ends here when its attempts are used up. It can be replayed until it is discarded or pruned.
            </Empty>
          )
        }
      </Loaded>
      {asked === null ? null : <BulkDialog {...asked} onClose={() => setAsked(null)} onDone={causes.reload} />}
    </Page>
  );
}

function Scope({ page }: { page: CausePage }) {
  const jobs = many(page.total, "job");
  return (
    <span class="hint">
      {many(page.causes.length, "cause")}, {page.complete ? jobs : `the newest ${exact(page.scanned)} of ${jobs}`}
    </span>
  );
}

function Latest({ queue }: { queue: string }) {
  const page = useResource<JobPage>("dead", { queue, limit: 50 }, 5);
  const all = <a href={href("jobs", [], { state: "dead", queue })}>All dead jobs</a>;
  return (
    <Card title="Latest" aside={all} flush>
      <Loaded resource={page}>{(data) => <JobTable rows={data.jobs} caption="The latest dead jobs" />}</Loaded>
    </Card>
  );
}
