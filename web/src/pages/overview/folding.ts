// Neighbours in the list of events that say the same become one, which counts the others. Pure.
import type { Happening } from "../../wire/types";

export function foldEqual(events: readonly Happening[]): Happening[] {
  const folded: Happening[] = [];
  for (const event of events) {
    const last = folded[folded.length - 1];
    if (last !== undefined && last.text === event.text && last.kind === event.kind) {
      folded[folded.length - 1] = { ...last, folded: last.folded + 1 + event.folded };
    } else {
      folded.push(event);
    }
  }
  return folded;
}
