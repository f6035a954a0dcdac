// Which bulk actions a list offers. Pure.
import type { Verb } from "./bulk";
import type { JobFilter } from "./filter";

/** Only what can apply to the states in question. */
export function verbsFor(filter: JobFilter, isOfChosen: boolean): Verb[] {
  const states = filter.state;
  const any = isOfChosen && !states.length;
  const has = (...wanted: string[]) => any || states.some((state) => wanted.includes(state));
  const verbs: Verb[] = [];
  if (has("dead")) verbs.push("replay");
  if (has("queued", "running", "scheduled", "blocked")) verbs.push("cancel");
  if (has("dead", "completed", "cancelled")) verbs.push("discard");
  return verbs;
}
