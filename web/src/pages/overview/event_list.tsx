// The last events of the nodes and of people, newest first.
import { useCell } from "../../live/cell";
import { feed } from "../../live/feed";
import { href } from "../../live/route";
import { Data } from "../../parts/data";
import { Icon, type IconName } from "../../parts/icon";
import { Empty } from "../../parts/quiet";
import { Ago } from "../../parts/when";
import type { Happening } from "../../wire/types";
import { foldEqual } from "./folding";

const ICONS: Record<Happening["level"], IconName> = { error: "dead", warning: "warning", info: "info" };
const SHOWN = 12;

export function EventList() {
  const events = useCell(feed, (value) => value.events);
  if (!events.length) return <Empty icon="info" title="Nothing has happened yet" />;
  return (
    <ol class="feed">
      {foldEqual(events)
        .slice(0, SHOWN)
        .map((event) => (
          <li key={event.number} class={`feed-${event.level}`}>
            <Icon name={ICONS[event.level] ?? "info"} label={event.level} />
            <EventText event={event} />
            <span class="faint feed-when">
              <Ago at={event.at} />
            </span>
          </li>
        ))}
    </ol>
  );
}

function EventText({ event }: { event: Happening }) {
  const { job } = event.facts;
  const text = (
    <>
      <Data text={event.text} />
      {event.folded > 0 ? <span class="faint"> and {event.folded} more</span> : null}
    </>
  );
  return typeof job === "string" ? <a href={href("jobs", [job])}>{text}</a> : <span>{text}</span>;
}
