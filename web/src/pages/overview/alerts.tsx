// What needs attention, on top of everything. Where nothing does, nothing is shown.
import { useEffect, useRef, useState } from "preact/hooks";
import { href } from "../../live/route";
import { Data } from "../../parts/data";
import { Icon } from "../../parts/icon";
import { Ago } from "../../parts/when";
import { visible } from "../../text/hostile";
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
    <>
      <News alerts={worst} />
      <ul class="alerts" aria-label="Alerts">
        {worst.map((alert) => (
          <li key={keyOf(alert)} class={`alert ${alert.level}`}>
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
    </>
  );
}

function keyOf(alert: Alert): string {
  return `${alert.level}/${alert.kind}/${alert.subject}`;
}

const MOST = 3; // alerts read out at once

/** Reads out an alert when it comes, once: the text of one that stays changes with every second that a job waits. */
function News({ alerts }: { alerts: readonly Alert[] }) {
  const told = useRef<ReadonlySet<string>>(new Set());
  const [text, setText] = useState("");
  const keys = alerts.map(keyOf);
  useEffect(() => {
    const fresh = alerts.filter((alert) => !told.current.has(keyOf(alert)));
    told.current = new Set(keys);
    if (!fresh.length) return;
    const more = fresh.length > MOST ? `, and ${fresh.length - MOST} more alerts` : "";
    setText(visible(fresh.slice(0, MOST).map((alert) => alert.text).join("; ") + more));
  }, [keys.join("\n")]);
  return (
    <p class="unseen" role="status" aria-live="polite">
      {text}
    </p>
  );
}
