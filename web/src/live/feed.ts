// What the stream has told so far: the state of the connection, the overview, events, and a few minutes of
// samples for live charts. Components read it with useCell; only stream.ts writes it.
import type { Happening, Overview } from "../wire/types";
import { cell } from "./cell";
import { emptySamples, type Samples } from "./samples";

/** "polled": no stream is to be had, so the overview is asked for every few seconds. */
export type Link = "connecting" | "live" | "polled" | "lost";

export interface Feed {
  link: Link;
  heardAt: number | null; // this machine's clock, milliseconds
  skew: number; // the server's clock minus this one's, milliseconds
  overview: Overview | null;
  events: Happening[];
  samples: Samples;
}

export const feed = cell<Feed>({
  link: "connecting",
  heardAt: null,
  skew: 0,
  overview: null,
  events: [],
  samples: emptySamples(),
});

export function update(part: Partial<Feed>): void {
  feed.set({ ...feed.get(), ...part });
}

/** The server's time now: ages are counted by its clock, not by this machine's. */
export function serverNow(): number {
  return Date.now() + feed.get().skew;
}
