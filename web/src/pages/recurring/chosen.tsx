// One recurring task: why it stands where it stands, and its last ticks.
import { useResource } from "../../live/resource";
import { href } from "../../live/route";
import { Card } from "../../parts/card";
import { Data, Name } from "../../parts/data";
import { Facts } from "../../parts/facts";
import { Loaded } from "../../parts/quiet";
import { Ago, Moment } from "../../parts/when";
import { span } from "../../text/numbers";
import { segment } from "../../wire/http";
import type { Recurring, Tick } from "../../wire/types";
import { RecurringActions } from "./actions";
import { Outcome, RecurringBadge } from "./table";

export function Chosen({ item, reload }: { item: Recurring; reload: () => void }) {
  const ticks = useResource<{ history: Tick[] }>(`recurring/${segment(item.name)}/history`, { limit: 20 }, 3);
  return (
    <Card title={<Name text={item.name} />} aside={<RecurringBadge item={item} />}>
      <div class="pool-top">
        <p class="why">{item.why === null ? null : <Data text={item.why} most={600} />}</p>
        <RecurringActions item={item} reload={reload} />
      </div>
      <Facts
        facts={[
          ["Cadence", <Data key="cadence" text={item.cadence ?? item.mode} />],
          ["Next", item.next_at === null ? null : <Ago key="next" at={item.next_at} />],
          [
            "Runs after",
            item.depends_on.length ? <Names key="after" names={item.depends_on.map((one) => one.name)} /> : null,
          ],
          ["Never beside", item.blocks.length ? <Names key="beside" names={item.blocks} /> : null],
          ["Disabled by", item.disabled_by],
          ["Queue", <Data key="queue" text={item.queue} />],
        ]}
      />
      <h3>Last ticks</h3>
      <Loaded resource={ticks}>{(data) => <Ticks ticks={data.history} />}</Loaded>
    </Card>
  );
}

function Names({ names }: { names: readonly string[] }) {
  return (
    <>
      {names.map((name, place) => (
        <span key={name}>
          {place ? ", " : ""}
          <a href={href("recurring", [name])}>
            <Name text={name} />
          </a>
        </span>
      ))}
    </>
  );
}

function Ticks({ ticks }: { ticks: readonly Tick[] }) {
  if (!ticks.length) return <p class="hint">It has not run yet.</p>;
  return (
    <ol class="ticks">
      {ticks.map((tick) => (
        <li key={`${tick.at}/${tick.job}`}>
          <Moment at={tick.at} />
          <Outcome word={tick.state} />
          <span class="faint">{span(tick.run)}</span>
          <span class="tick-note">
            <Data text={tick.error ?? tick.reason ?? ""} most={200} />
          </span>
          {tick.job === null ? null : <a href={href("jobs", [tick.job])}>job</a>}
        </li>
      ))}
    </ol>
  );
}
