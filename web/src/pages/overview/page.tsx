// The overview: what needs attention, the totals, how it went, every queue, and what happened last.
import { useState } from "preact/hooks";
import { useCell } from "../../live/cell";
import { feed } from "../../live/feed";
import { useResource } from "../../live/resource";
import { Card, Page } from "../../parts/card";
import { Empty, Loading } from "../../parts/quiet";
import { Segments } from "../../parts/segments";
import type { Statistics } from "../../wire/types";
import { DecisionList } from "../scaling/decision_list";
import { Alerts } from "./alerts";
import { Charts } from "./charts";
import { EventList } from "./event_list";
import { QueueTable } from "./queue_table";
import { Totals } from "./totals";
import { RANGES, type Range } from "./ranges";

export function OverviewPage() {
  const overview = useCell(feed, (value) => value.overview);
  const [range, setRange] = useState<Range>("1h");
  const window = range === "live" ? "1h" : range;
  const statistics = useResource<Statistics>("statistics", { window }, 10);
  const lastHour = useResource<Statistics>(window === "1h" ? null : "statistics", { window: "1h" }, 30);
  if (overview === null) {
    return (
      <Page title="Overview">
        <Loading lines={8} />
      </Page>
    );
  }
  const hour = range === "live" ? null : window === "1h" ? statistics.data : lastHour.data;
  const picker = <Segments label="Time range" value={range} options={RANGES} onChange={setRange} />;
  return (
    <Page title="Overview" actions={picker}>
      <Alerts alerts={overview.alerts} />
      <Totals overview={overview} hour={hour} />
      <Charts range={range} statistics={statistics} />
      <Card title="Queues" flush aside={<span class="hint">throughput of the last minute, all else of the last 5</span>}>
        {overview.queues.length ? (
          <QueueTable queues={overview.queues} pools={overview.pools} hour={hour} />
        ) : (
          <Empty icon="queue" title="No queue yet">
            A queue appears with its first job, or when a node that serves it starts: <code>millpond run jobs:app</code>
          </Empty>
        )}
      </Card>
      <div class="two">
        <Card title="What happened" flush>
          <EventList />
        </Card>
        <Card title="Scaling decisions" flush>
          <DecisionList decisions={overview.decisions} />
        </Card>
      </div>
    </Page>
  );
}
