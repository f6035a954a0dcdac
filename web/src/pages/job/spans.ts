// A job's life as stretches of time: waiting, running, waiting again. Pure.
import { instant } from "../../text/times";
import type { JobDetail } from "../../wire/types";

export interface Stretch {
  kind: "wait" | "run";
  label: string;
  ended: string | null;
  start: number; // share of the whole, 0 to 1
  width: number;
  seconds: number;
}

export interface Life {
  stretches: Stretch[];
  seconds: number;
}

/** Everything from its creation to its end, or to `now` while it lives. Stretches too short to see keep a sliver. */
export function lifeOf(job: JobDetail, now: number): Life {
  const from = instant(job.created_at) ?? now;
  const to = Math.max(instant(job.finished_at) ?? now, from + 1);
  const whole = to - from;
  const stretches: Stretch[] = [];
  let at = from;
  const add = (kind: Stretch["kind"], label: string, ended: string | null, start: number, end: number) => {
    const [first, last] = [clamp(start, from, to), clamp(end, from, to)];
    if (kind === "run" || last - first > whole * 0.001) {
      stretches.push({
        kind,
        label,
        ended,
        start: (first - from) / whole,
        width: (last - first) / whole,
        seconds: (last - first) / 1000,
      });
    }
  };
  for (const attempt of job.attempts) {
    const start = instant(attempt.started_at);
    if (start === null) continue;
    const end = instant(attempt.ended_at) ?? to;
    add("wait", "waiting", null, at, start);
    add("run", `attempt ${attempt.number}`, attempt.ended, start, end);
    at = Math.max(at, end);
  }
  if (job.state === "running" && at < to && !job.attempts.some((one) => one.ended_at === null)) {
    const start = Math.max(instant(job.started_at) ?? at, at);
    add("wait", "waiting", null, at, start);
    add("run", `attempt ${job.attempts.length + 1}`, null, start, to);
    at = to;
  }
  add("wait", "waiting", null, at, to);
  return { stretches, seconds: whole / 1000 };
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}
