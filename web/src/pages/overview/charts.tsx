// Throughput, waiting and open jobs over time: from the statistics that the store keeps, or second by second
// from what this page has heard.
import { useCell } from "../../live/cell";
import { feed, serverNow } from "../../live/feed";
import type { Resource } from "../../live/resource";
import type { Samples } from "../../live/samples";
import { Card } from "../../parts/card";
import { Chart } from "../../parts/chart";
import type { Line } from "../../parts/chart_options";
import { Loaded } from "../../parts/quiet";
import { count, span } from "../../text/numbers";
import type { SeriesOf, Statistics } from "../../wire/types";
import type { Range } from "./ranges";
import { perMinutes } from "./rates";

interface Panels {
  times: readonly number[];
  flow: Line[];
  open: Line[];
  wait: Line[];
}

/** The panels of stored statistics. The last step has not ended: see `perMinutes`. */
export function storedPanels(times: readonly number[], step: number, series: SeriesOf, now: number): Panels {
  const perMinute = (values: readonly number[]) =>
    perMinutes(values, step, now / 1000 - (times[times.length - 1] ?? 0));
  return {
    times,
    flow: [
      { label: "completed", tone: "ok", values: perMinute(series.completed), fill: true },
      { label: "enqueued", tone: "muted", values: perMinute(series.enqueued), dash: true },
      { label: "dead", tone: "error", values: perMinute(series.dead) },
    ],
    open: [{ label: "jobs not ended", tone: "accent", values: series.open, fill: true }],
    wait: [
      { label: "95th percentile", tone: "violet", values: series.wait_p95, fill: true },
      { label: "median", tone: "muted", values: series.wait_p50 },
    ],
  };
}

export function livePanels(samples: Samples): Panels {
  return {
    times: samples.map((one) => one.at),
    flow: [
      { label: "completed", tone: "ok", values: samples.map((one) => one.perMinute), fill: true },
      { label: "failing", tone: "error", values: samples.map((one) => one.failed) },
    ],
    open: [
      { label: "waiting", tone: "accent", values: samples.map((one) => one.queued), fill: true },
      { label: "running", tone: "ok", values: samples.map((one) => one.running) },
      { label: "workers", tone: "muted", values: samples.map((one) => one.workers), dash: true },
    ],
    wait: [{ label: "95th percentile", tone: "violet", values: samples.map((one) => one.wait), fill: true }],
  };
}

export function PanelRow({ panels, limit = null, group }: { panels: Panels; limit?: number | null; group: string }) {
  return (
    <div class="charts">
      <Card title="Throughput" aside={<span class="hint">jobs a minute</span>}>
        <Chart title="Throughput in jobs a minute" {...panels} lines={panels.flow} format={count} group={group} />
      </Card>
      <Card title="Backlog" aside={<span class="hint">jobs</span>}>
        <Chart title="Backlog in jobs" {...panels} lines={panels.open} format={count} group={group} />
      </Card>
      <Card title="Wait" aside={<span class="hint">until a job begins</span>}>
        <Chart
          title="Wait until a job begins"
          {...panels}
          lines={panels.wait}
          format={span}
          group={group}
          limit={limit}
        />
      </Card>
    </div>
  );
}

export function Charts({ range, statistics }: { range: Range; statistics: Resource<Statistics> }) {
  const samples = useCell(feed, (value) => (range === "live" ? value.samples : null));
  if (samples !== null) return <PanelRow panels={livePanels(samples)} group="overview-live" />;
  return (
    <Loaded resource={statistics}>
      {(data) => (
        <PanelRow panels={storedPanels(data.times, data.step, data.all, serverNow())} group={`overview-${range}`} />
      )}
    </Loaded>
  );
}
