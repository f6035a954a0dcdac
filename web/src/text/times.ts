// Instants as people read them, in the reader's own time zone; the exact UTC text is kept for titles. Pure.
import { span, UNKNOWN } from "./numbers";

export function instant(text: string | null | undefined): number | null {
  if (!text) return null;
  const value = Date.parse(text);
  return Number.isNaN(value) ? null : value;
}

/** 3 s ago, in 5 min; for an instant close to now, just now. */
export function ago(text: string | null | undefined, now: number): string {
  const at = instant(text);
  if (at === null) return UNKNOWN;
  const seconds = Math.round((now - at) / 1000);
  if (Math.abs(seconds) < 1) return "just now";
  return seconds > 0 ? `${coarse(seconds)} ago` : `in ${coarse(-seconds)}`;
}

function coarse(seconds: number): string {
  return span(seconds).split(" ")[0] ?? UNKNOWN;
}

/** 14:03:09 today, 3 Nov 14:03 before. */
export function moment(text: string | null | undefined, now: number): string {
  const at = instant(text);
  if (at === null) return UNKNOWN;
  const date = new Date(at);
  if (Math.abs(now - at) < 86_400_000 && date.getDate() === new Date(now).getDate()) return clock(at);
  const day = date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  const isThisYear = date.getFullYear() === new Date(now).getFullYear();
  return `${day}${isThisYear ? "" : ` ${date.getFullYear()}`} ${clock(at).slice(0, 5)}`;
}

export function clock(at: number): string {
  return new Date(at).toLocaleTimeString("en-GB", { hour12: false });
}

/** Seconds between two instants, null where either is missing. */
export function between(start: string | null | undefined, end: string | null | undefined): number | null {
  const [from, to] = [instant(start), instant(end)];
  return from === null || to === null ? null : (to - from) / 1000;
}
