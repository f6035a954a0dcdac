// States as icon, word and colour together: none of them carries the meaning alone.
import { oneLine, visible } from "../text/hostile";
import type { JobState, NodeFacts, WorkerRow } from "../wire/types";
import { Icon, type IconName } from "./icon";

const JOB: Record<JobState, [IconName, string]> = {
  queued: ["circle", "queued"],
  running: ["running", "running"],
  scheduled: ["clock", "scheduled"],
  blocked: ["link", "blocked"],
  completed: ["check", "completed"],
  dead: ["dead", "dead"],
  cancelled: ["cancel", "cancelled"],
};

export function StateBadge({ state, reason }: { state: JobState; reason?: string | null }) {
  const [icon, word] = JOB[state] ?? ["info", state];
  return (
    <span class={`badge state-${state}`}>
      <Icon name={icon} />
      {word}
      {reason && reason !== word ? <bdi class="badge-more">{visible(oneLine(reason, 60))}</bdi> : null}
    </span>
  );
}

const TONES = {
  ok: ["check", "ok"],
  degraded: ["warning", "warn"],
  failed: ["dead", "error"],
} as const;

export function HealthBadge({ status }: { status: "ok" | "degraded" | "failed" }) {
  const [icon, tone] = TONES[status] ?? TONES.degraded;
  return <Badge icon={icon} tone={tone} word={status} />;
}

export type Tone = "ok" | "warn" | "error" | "info" | "muted" | "accent";

export function Badge({ icon, tone, word }: { icon: IconName; tone: Tone; word: string }) {
  return (
    <span class={`badge tone-${tone}`}>
      <Icon name={icon} />
      {visible(oneLine(word, 60))}
    </span>
  );
}

export function NodeBadge({ node }: { node: NodeFacts }) {
  if (node.state === "rescued") return <Badge icon="dead" tone="error" word="rescued" />;
  if (node.state === "silent") return <Badge icon="warning" tone="warn" word="silent" />;
  if (node.phase === "draining") return <Badge icon="drain" tone="info" word="draining" />;
  if (node.phase === "held") return <Badge icon="pause" tone="warn" word="held" />;
  if (node.phase === "stopped") return <Badge icon="stop" tone="muted" word="stopped" />;
  return <Badge icon="check" tone="ok" word={node.phase ?? "live"} />;
}

const WORKER: Record<WorkerRow["state"], [IconName, Tone]> = {
  busy: ["running", "accent"],
  idle: ["circle", "muted"],
  starting: ["clock", "info"],
  draining: ["drain", "warn"],
  dead: ["dead", "error"],
};

export function WorkerBadge({ state }: { state: WorkerRow["state"] }) {
  const [icon, tone] = WORKER[state] ?? ["info", "muted"];
  return <Badge icon={icon} tone={tone} word={state} />;
}
