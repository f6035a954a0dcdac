// Scaling: for a pool, workers wanted against workers there against load, and every decision as a sentence.
import { useState } from "preact/hooks";
import { useCell } from "../../live/cell";
import { feed } from "../../live/feed";
import { type Resource, useResource } from "../../live/resource";
import { go, href } from "../../live/route";
import { Card, Page } from "../../parts/card";
import { Chart } from "../../parts/chart";
import { Data } from "../../parts/data";
import { Empty, Loaded, Loading } from "../../parts/quiet";
import { oneLine, visible } from "../../text/hostile";
import { Segments } from "../../parts/segments";
import { count } from "../../text/numbers";
import type { Decision, Pool, Statistics } from "../../wire/types";
import { DecisionList } from "./decision_list";
import { history, loadLine } from "./history";
import { PoolCard } from "./pool_card";

export function ScalingPage({ pool }: { pool: string | null }) {
  const pools = useCell(feed, (value) => value.overview?.pools ?? null);
  const decisions = useResource<{ decisions: Decision[] }>("decisions", { pool, limit: 200 }, 3);
  const hour = useResource<Statistics>("statistics", { window: "1h" }, 20);
  if (pools === null)
    return (
      <Page title="Scaling">
        <Loading lines={8} />
      </Page>
    );
  const shown = pool === null ? pools : pools.filter((item) => item.pool === pool);
  const title = pool === null ? "Scaling" : <Data text={pool} most={80} />;
  return (
    <Page
      title={title}
      above={pool === null ? undefined : <a href={href("scaling")}>Scaling</a>}
      actions={<Picker pools={pools} pool={pool} />}
    >
      {shown.length ? null : (
        <Empty icon="scaling" title={pool === null ? "No pool is running" : "No node runs this pool"}>
          Pools appear with the first node: <code>millpond run jobs:app</code>
        </Empty>
      )}
      <div class="charts">
        {shown.map((item) => (
          <PoolChart key={item.pool} pool={item} decisions={decisions.data?.decisions ?? []} hour={hour.data} />
        ))}
      </div>
      <div class="pools">
        {shown.map((item) => (
          <PoolCard key={item.pool} pool={item} reload={decisions.reload} />
        ))}
      </div>
      <Log decisions={decisions} />
    </Page>
  );
}

type Kind = "changes" | "all";

function Log({ decisions }: { decisions: Resource<{ decisions: Decision[] }> }) {
  const [kind, setKind] = useState<Kind>("changes");
  const picker = (
    <Segments<Kind>
      label="Which decisions"
      value={kind}
      options={[
        ["changes", "Changes"],
        ["all", "All"],
      ]}
      onChange={setKind}
    />
  );
  return (
    <Card title="Decisions" aside={picker} flush>
      <Loaded resource={decisions}>
        {(data) => <DecisionList decisions={data.decisions.filter((one) => kind === "all" || one.from !== one.to)} />}
      </Loaded>
    </Card>
  );
}

function Picker({ pools, pool }: { pools: readonly Pool[]; pool: string | null }) {
  const choose = (event: Event) => {
    const { value } = event.currentTarget as HTMLSelectElement;
    go(value ? href("scaling", [value]) : href("scaling"));
  };
  return (
    <label class="pick">
      <span class="unseen">Pool</span>
      <select value={pool ?? ""} onChange={choose}>
        <option value="">All pools</option>
        {pools.map((item) => (
          <option key={item.pool} value={item.pool}>
            {visible(oneLine(item.pool, 60))}
          </option>
        ))}
      </select>
    </label>
  );
}

interface ChartProps {
  pool: Pool;
  decisions: readonly Decision[];
  hour: Statistics | null;
}

function PoolChart({ pool, decisions, hour }: ChartProps) {
  const samples = useCell(feed, (value) => value.samples);
  const past = history(pool, decisions, samples, hour);
  return (
    <Card title={<Data text={pool.pool} most={60} />} aside={<span class="hint">last hour</span>}>
      <Chart
        title="Workers of the pool"
        times={past.times}
        lines={[
          { label: "busy", tone: "accent", values: past.busy, fill: true, isStep: true },
          { label: "actual", tone: "ok", values: past.actual, isStep: true },
          { label: "wanted", tone: "warn", values: past.wanted, dash: true, isStep: true },
        ]}
        format={count}
        group="scaling"
      />
      <Chart
        title="Load of the pool"
        times={past.times}
        lines={[loadLine(past)]}
        format={count}
        height={90}
        group="scaling"
      />
    </Card>
  );
}
