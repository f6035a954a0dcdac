// What needs attention, on top of everything. Where nothing does, nothing is shown.
import { href } from "../../live/route";
import { Data } from "../../parts/data";
import { Icon } from "../../parts/icon";
import { Ago } from "../../parts/when";
import type { Alert } from "../../wire/types";

const PAGES: Record<string, (subject: string) => string> = {
  wait: (subject) => href("queues", [subject]),
  backing_up: (subject) => href("queues", [subject]),
  unserved: (subject) => href("queues", [subject]),
  pool: (subject) => href("scaling", [subject]),
  no_node: () => href("nodes"),
  node_silent: () => href("nodes"),
  breaker: (subject) => href("recurring", [subject]),
  dead: () => href("dead"),
};

export function Alerts({ alerts }: { alerts: readonly Alert[] }) {
  const worst = [...alerts].sort((one, other) => Number(other.level === "error") - Number(one.level === "error"));
  return (
    <ul class="alerts" aria-label="Alerts" aria-live="polite">
      {worst.map((alert) => (
        <li key={`${alert.kind}/${alert.subject}`} class={`alert ${alert.level}`}>
          <Icon name={alert.level === "error" ? "dead" : "warning"} label={alert.level} />
          <Data text={alert.text} />
          {alert.since === null ? null : (
            <span class="faint">
              <Ago at={alert.since} />
            </span>
          )}
          {PAGES[alert.kind] === undefined ? null : <a href={PAGES[alert.kind]!(alert.subject)}>Look</a>}
        </li>
      ))}
    </ul>
  );
}
