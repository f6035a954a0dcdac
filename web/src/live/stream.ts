// The page's one EventSource. The browser reconnects a stream that breaks; one that is refused, or that has
// been silent for 15 s (the server speaks every 5), is opened anew here, with growing patience. While none is to
// be had, since as many are open as the server takes, the overview is asked for instead.
import { read } from "../wire/http";
import { addHappening, applyDelta } from "../wire/merge";
import type { Delta, Happening, Overview, Session } from "../wire/types";
import { feed, update } from "./feed";
import { addSample, sampleOf } from "./samples";
import { dropEndedSession, hearSession, session } from "./session";

const SILENCE = 15_000;
const FIRST = 1_000;
const LONGEST = 15_000;
const POLL = 3_000;

let source: EventSource | null = null;
let watchdog = 0;
let opener = 0;
let poller = 0; // 0: the overview is not asked for
let patience = FIRST;
let lastEvent = 0;

export function startStream(): void {
  stopStream();
  update({ link: "connecting" });
  open();
}

export function stopStream(): void {
  window.clearTimeout(watchdog);
  window.clearTimeout(opener);
  stopPolling();
  closeSource();
}

function closeSource(): void {
  source?.close();
  source = null;
}

/** Tries at once instead of waiting for the next turn. */
export function tryNow(): void {
  if (feed.get().link !== "live") startStream();
}

function open(): void {
  const stream = new EventSource(lastEvent ? `api/v1/events?last_event_id=${lastEvent}` : "api/v1/events");
  source = stream;
  stream.addEventListener("hello", (message) => {
    heard();
    hearSession((parse(message) as { session: Session }).session);
  });
  stream.addEventListener("overview", (message) => take(parse(message) as Overview));
  stream.addEventListener("delta", (message) => {
    const { overview } = feed.get();
    if (overview !== null) take(applyDelta(overview, parse(message) as Delta));
  });
  stream.addEventListener("event", (message) => takeEvent(parse(message) as Happening));
  stream.addEventListener("goodbye", (message) => leave((parse(message) as { reason: string }).reason));
  stream.addEventListener("error", () => {
    if (source !== stream) return;
    const isRefused = stream.readyState === EventSource.CLOSED;
    lose(isRefused);
    if (isRefused) dropEndedSession().catch(() => undefined); // the server is away: the next turn tells
  });
  watch();
}

function parse(message: Event): unknown {
  return JSON.parse((message as MessageEvent<string>).data);
}

function heard(at?: string): void {
  patience = FIRST;
  stopPolling();
  watch();
  const now = Date.now();
  update({ link: "live", heardAt: now, ...(at === undefined ? {} : { skew: Date.parse(at) - now }) });
}

function take(overview: Overview): void {
  heard(overview.at);
  update({ overview, samples: addSample(feed.get().samples, sampleOf(overview)) });
}

function takeEvent(happening: Happening): void {
  heard();
  lastEvent = Math.max(lastEvent, happening.number);
  update({ events: addHappening(feed.get().events, happening) });
}

function leave(reason: string): void {
  if (reason === "expired") {
    const known = session.get();
    if (known !== null) hearSession({ ...known, scope: "none" });
  }
  lose(true);
}

/** Shows what is known as old; a stream that is over, not merely broken, is opened again later. */
function lose(isOver: boolean): void {
  if (poller === 0) update({ link: "lost" });
  if (!isOver) return;
  window.clearTimeout(watchdog);
  window.clearTimeout(opener);
  closeSource();
  if (poller === 0) void poll();
  opener = window.setTimeout(open, patience);
  patience = Math.min(patience * 2, LONGEST);
}

/** Asks for the overview until a stream is heard again. */
async function poll(): Promise<void> {
  const turn = window.setTimeout(() => void poll(), POLL);
  poller = turn;
  if (document.hidden) return;
  try {
    const overview = await read<Overview>("overview");
    if (poller !== turn) return; // a stream was heard meanwhile, or the page was left
    const now = Date.now();
    const samples = addSample(feed.get().samples, sampleOf(overview));
    update({ link: "polled", heardAt: now, skew: Date.parse(overview.at) - now, overview, samples });
  } catch {
    if (poller === turn) update({ link: "lost" });
  }
}

function stopPolling(): void {
  window.clearTimeout(poller);
  poller = 0;
}

function watch(): void {
  window.clearTimeout(watchdog);
  watchdog = window.setTimeout(() => lose(true), SILENCE);
}
