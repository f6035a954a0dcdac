// Every recurring task in a row: cadence, next and last tick, breaker, and what can be done.
import { href } from "../../live/route";
import { Badge } from "../../parts/badge";
import { Data, Name } from "../../parts/data";
import { Ago } from "../../parts/when";
import type { Recurring } from "../../wire/types";
import { RecurringActions } from "./actions";

interface Props {
  items: readonly Recurring[];
  chosen: string | null;
  reload: () => void;
}

export function RecurringTable({ items, chosen, reload }: Props) {
  return (
    <table class="sheet recurring">
      <caption class="unseen">Recurring tasks with cadence, next and last tick, and breaker</caption>
      <thead>
        <tr>
          <th scope="col">Task</th>
          <th scope="col">State</th>
          <th scope="col">Cadence</th>
          <th scope="col">Next</th>
          <th scope="col">Last</th>
          <th scope="col">Failures</th>
          <th scope="col">
            <span class="unseen">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <Row key={item.name} item={item} isChosen={item.name === chosen} reload={reload} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ item, isChosen, reload }: { item: Recurring; isChosen: boolean; reload: () => void }) {
  return (
    <tr class={isChosen ? "chosen" : ""}>
      <th scope="row" data-label="Task">
        <a href={href("recurring", [item.name])}>
          <Name text={item.name} />
        </a>
        <small class="faint">
          <Data text={item.queue} most={60} />
        </small>
      </th>
      <td data-label="State">
        <RecurringBadge item={item} />
      </td>
      <td data-label="Cadence">
        <Data text={item.cadence ?? item.mode} most={80} />
      </td>
      <td data-label="Next">
        <Ago at={item.next_at} />
      </td>
      <td data-label="Last">
        <Ago at={item.last_at} /> <Outcome word={outcomeOf(item)} />
      </td>
      <td data-label="Failures">
        {item.failures}
        <span class="faint"> of {item.max_failures}</span>
      </td>
      <td class="acts">
        <RecurringActions item={item} reload={reload} isShort />
      </td>
    </tr>
  );
}

/** How the last tick ended, as far as it is told. */
export function outcomeOf(item: Recurring): string | null {
  if (item.last_outcome !== undefined) return item.last_outcome;
  const [good, bad] = [item.last_success_at ?? "", item.last_failure_at ?? ""];
  return good || bad ? (good > bad ? "completed" : "dead") : null;
}

export function RecurringBadge({ item }: { item: Recurring }) {
  if (item.breaker === "open") return <Badge icon="dead" tone="error" word="breaker open" />;
  if (item.breaker === "half-open") return <Badge icon="warning" tone="warn" word="probing" />;
  if (!item.enabled) return <Badge icon="pause" tone="muted" word="disabled" />;
  if (item.running) return <Badge icon="running" tone="accent" word="running" />;
  return <Badge icon="check" tone="ok" word="enabled" />;
}

export function Outcome({ word }: { word: string | null }) {
  if (word === null) return null;
  const [icon, tone] =
    word === "completed"
      ? (["check", "ok"] as const)
      : word === "dead"
        ? (["dead", "error"] as const)
        : (["info", "muted"] as const);
  return <Badge icon={icon} tone={tone} word={word.slice(0, 40)} />;
}
