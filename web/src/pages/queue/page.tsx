// One queue: its numbers, its charts, its pools, its jobs; pausing and limiting it.
import { useState } from "preact/hooks";
import { act } from "../../live/actions";
import { useCell } from "../../live/cell";
import { confirmed } from "../../live/confirm";
import { feed, serverNow } from "../../live/feed";
import { useResource } from "../../live/resource";
import { href } from "../../live/route";
import { Badge } from "../../parts/badge";
import { Button } from "../../parts/button";
import { Card, Page } from "../../parts/card";
import { Data } from "../../parts/data";
import { Empty, Loaded } from "../../parts/quiet";
import { Segments } from "../../parts/segments";
import { change, segment } from "../../wire/http";
import type { JobPage, Queue, QueueDetail, Statistics } from "../../wire/types";
import { JobTable } from "../jobs/table";
import { PanelRow, storedPanels } from "../overview/charts";
import { RANGES, type Range } from "../overview/ranges";
import { PoolCard } from "../scaling/pool_card";
import { QueueNumbers } from "./numbers";
import { RateDialog } from "./rate";

const STORED = RANGES.filter(([range]) => range !== "live");

export function QueuePage({ name }: { name: string }) {
  const detail = useResource<QueueDetail>(`queues/${segment(name)}`);
  const fresh = useCell(feed, (value) => value.overview?.queues.find((item) => item.queue === name) ?? null);
  const [range, setRange] = useState<Range>("1h");
  const title = <Data text={name} most={100} />;
  return (
    <Page
      title={title}
      above={<a href={href("overview")}>Queues</a>}
      actions={fresh ? <Actions queue={fresh} reload={detail.reload} /> : null}
    >
      <Loaded resource={detail} lines={10}>
        {(data) => {
          const queue = fresh ?? data;
          return (
            <>
              <QueueNumbers queue={queue} />
              <div class="row-end">
                <Segments label="Time range" value={range} options={STORED} onChange={setRange} />
              </div>
              <QueueCharts name={name} range={range} limit={queue.max_wait} />
              <div class="pools">
                {data.pool_items.map((pool) => (
                  <PoolCard key={pool.pool} pool={pool} reload={detail.reload} />
                ))}
              </div>
              <Latest name={name} />
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

function Actions({ queue, reload }: { queue: Queue; reload: () => void }) {
  const [isLimiting, setLimiting] = useState(false);
  const address = `queues/${segment(queue.queue)}`;
  const turn = async () => {
    const text = `Running jobs finish, and no job of queue ${queue.queue} begins on any node until it is resumed.`;
    const question = { title: "Pause the queue", text: [text], press: "Pause the queue" };
    if (!queue.paused && !(await confirmed(question))) return;
    const [verb, word] = queue.paused
      ? ["resume", "goes on"]
      : ["pause", "is paused: running jobs finish, no new one begins"];
    await act(() => change("POST", `${address}/${verb}`), `Queue ${queue.queue} ${word}`);
    reload();
  };
  return (
    <>
      {queue.paused ? <Badge icon="pause" tone="warn" word="paused" /> : null}
      <Button icon={queue.paused ? "play" : "pause"} tone={queue.paused ? "primary" : "plain"} onPress={turn}>
        {queue.paused ? "Resume" : "Pause"}
      </Button>
      <Button icon="edit" onPress={() => setLimiting(true)}>
        {queue.rate ? `${queue.rate}/s` : "Limit rate"}
      </Button>
      {isLimiting ? <RateDialog queue={queue} onClose={() => setLimiting(false)} /> : null}
    </>
  );
}

function QueueCharts({ name, range, limit }: { name: string; range: Range; limit: number | null }) {
  const statistics = useResource<Statistics>("statistics", { window: range, queue: name }, 10);
  return (
    <Loaded resource={statistics}>
      {(data) => (
        <PanelRow
          panels={storedPanels(data.times, data.step, data.queues[name] ?? data.all, serverNow())}
          limit={limit}
          group={`queue-${range}`}
        />
      )}
    </Loaded>
  );
}

function Latest({ name }: { name: string }) {
  const page = useResource<JobPage>("jobs", { queue: name, limit: 20 }, 3);
  const all = <a href={href("jobs", [], { queue: name })}>All jobs of this queue</a>;
  return (
    <Card title="Latest jobs" aside={all} flush>
      <Loaded resource={page}>
        {(data) =>
          data.jobs.length ? (
            <JobTable rows={data.jobs} caption={`The latest jobs of queue ${name}`} hideQueue />
          ) : (
            <Empty icon="jobs" title={data.cursor === null ? "No job in this queue" : "None among the latest jobs"} />
          )
        }
      </Loaded>
    </Card>
  );
}
