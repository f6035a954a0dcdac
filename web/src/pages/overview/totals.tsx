// The numbers a glance should answer with: is work waiting, is it done, how long does it take, who does it.
import type { ComponentChildren } from "preact";
import { useCell } from "../../live/cell";
import { feed } from "../../live/feed";
import { href } from "../../live/route";
import { Spark } from "../../parts/spark";
import { count, exact, rate, span } from "../../text/numbers";
import type { Overview, Statistics } from "../../wire/types";

interface Props {
  label: string;
  value: string;
  title?: string;
  note: ComponentChildren;
  to: string;
  spark?: readonly (number | null)[] | undefined;
  tone?: string;
}

export function Stat({ label, value, title, note, to, spark, tone = "accent" }: Props) {
  return (
    <a class={`stat stat-${tone}`} href={to}>
      <span class="stat-label">{label}</span>
      <span class="stat-value" title={title}>
        {value}
      </span>
      <span class="stat-note">{note}</span>
      {spark === undefined ? null : <Spark values={spark} tone={tone} />}
    </a>
  );
}

/** Small curves of the last minutes while the charts are live, of the last hour otherwise. */
export function Totals({ overview, hour }: { overview: Overview; hour: Statistics | null }) {
  const { totals } = overview;
  const samples = useCell(feed, (value) => value.samples);
  const recent = samples.slice(-180);
  return (
    <div class="stats">
      <Stat
        label="Waiting"
        value={count(totals.queued)}
        title={exact(totals.queued)}
        note={`${count(totals.scheduled)} scheduled, ${count(totals.blocked)} blocked`}
        to={href("jobs", [], { state: "queued" })}
        spark={recent.map((one) => one.queued)}
      />
      <Stat
        label="Running"
        value={count(totals.begun)}
        title={exact(totals.begun)}
        note={`${totals.busy} of ${totals.workers} workers busy${totals.claimed ? `, ${count(totals.claimed)} claimed ahead` : ""}`}
        to={href("nodes")}
        spark={recent.map((one) => one.running)}
      />
      <Stat
        label="Throughput"
        value={rate(totals.per_minute)}
        note={`in the last minute; ${count(totals.completed)} in all`}
        to={href("jobs", [], { state: "completed" })}
        spark={hour?.all.completed ?? recent.map((one) => one.perMinute)}
        tone="ok"
      />
      <Stat
        label="Wait, 95th percentile"
        value={span(totals.wait_p95)}
        note="until a job begins, last 5 min"
        to={href("scaling")}
        spark={hour?.all.wait_p95 ?? recent.map((one) => one.wait)}
        tone="violet"
      />
      <Stat
        label="Dead"
        value={count(totals.dead)}
        title={exact(totals.dead)}
        note={`${rate(totals.failed_per_minute)} failing in the last minute`}
        to={href("dead")}
        spark={hour?.all.dead ?? recent.map((one) => one.failed)}
        tone={totals.dead ? "error" : "muted"}
      />
    </div>
  );
}
