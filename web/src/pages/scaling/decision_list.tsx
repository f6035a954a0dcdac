// Decisions of the autoscaler as sentences, newest first, with a sign for the direction.
import { href } from "../../live/route";
import { Badge } from "../../parts/badge";
import { Data } from "../../parts/data";
import { Icon } from "../../parts/icon";
import { Empty } from "../../parts/quiet";
import { Ago } from "../../parts/when";
import type { Decision } from "../../wire/types";
import { reasonOf } from "./reason";

export function DecisionList({ decisions }: { decisions: readonly Decision[] }) {
  if (!decisions.length) {
    return (
      <Empty icon="scaling" title="No decision yet">
        A line appears whenever a pool grows or shrinks, with the reason.
      </Empty>
    );
  }
  return (
    <ol class="feed decisions">
      {decisions.map((decision) => (
        <li key={decision.number}>
          <Direction decision={decision} />
          <span class="decision-text">
            <a href={href("scaling", [decision.pool])}>
              <Data text={decision.pool} most={60} />
            </a>{" "}
            <b class="steps">{decision.from === decision.to ? decision.to : `${decision.from} → ${decision.to}`}</b>{" "}
            <span class="decision-reason">
              <Data text={reasonOf(decision)} />
            </span>
            {decision.shadow ? <Badge icon="info" tone="muted" word="only a recommendation" /> : null}
            {isTold(decision) ? null : <Badge icon="lock" tone="warn" word={`capped by ${decision.capped}`} />}
          </span>
          <span class="faint feed-when">
            <Ago at={decision.at} />
          </span>
        </li>
      ))}
    </ol>
  );
}

/** The bounds of the pool itself, and what the sentence names anyway, need no badge. */
function isTold(decision: Decision): boolean {
  const { capped } = decision;
  return capped === null || capped === "max" || capped === "min" || decision.text.includes(capped);
}

function Direction({ decision }: { decision: Decision }) {
  if (decision.to > decision.from)
    return (
      <span class="step-up">
        <Icon name="up" label="grows" />
      </span>
    );
  if (decision.to < decision.from)
    return (
      <span class="step-down">
        <Icon name="fall" label="shrinks" />
      </span>
    );
  return (
    <span class="step-same">
      <Icon name="next" label="stays" />
    </span>
  );
}
