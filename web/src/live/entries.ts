// What belongs to one entry of the browser's history: how far its page was scrolled and what it had loaded. Going
// back finds both again. The browser numbers nothing, so each entry carries a number of ours in its state.
import { useEffect, useState } from "preact/hooks";

interface Entry {
  scroll: number;
  kept: Map<string, unknown>;
}

const MOST = 30; // entries remembered: a list in one of them may have thousands of rows
const PATIENCE = 3_000; // milliseconds for a page to be long enough again
const entries = new Map<number, Entry>();
let last = 0;
let current = 0;
let isReturn = false;

/** Called when the address has changed, and once at the start: which entry is this? */
export function arrive(): void {
  const old = entries.get(current);
  if (old !== undefined) old.scroll = window.scrollY;
  const told: unknown = (history.state as { entry?: unknown } | null)?.entry;
  isReturn = typeof told === "number" && entries.has(told);
  current = isReturn ? (told as number) : ++last;
  if (isReturn) return;
  entries.set(current, { scroll: 0, kept: new Map() });
  for (const number of [...entries.keys()].slice(0, -MOST)) entries.delete(number);
  history.replaceState({ entry: current }, "");
}

/** State that is there again when the person comes back to this entry. */
export function useKept<T>(name: string, initial: T): [T, (change: T | ((old: T) => T)) => void] {
  const [value, setValue] = useState<T>(() => (kept(name) ? (entries.get(current)!.kept.get(name) as T) : initial));
  useEffect(() => void entries.get(current)?.kept.set(name, value), [value]);
  return [value, setValue];
}

/** Is there something from an earlier visit? */
export function kept(name: string): boolean {
  return isReturn && (entries.get(current)?.kept.has(name) ?? false);
}

/** To the top of a page that is new, to where it was on one that is not, once it is long enough for that. */
export function placeScroll(): void {
  const top = isReturn ? (entries.get(current)?.scroll ?? 0) : 0;
  window.scrollTo({ top });
  if (top === 0) return;
  const [mine, until] = [current, Date.now() + PATIENCE];
  const leave = new AbortController(); // whoever scrolls has taken over
  for (const kind of ["wheel", "touchstart", "keydown", "pointerdown"]) {
    window.addEventListener(kind, () => leave.abort(), { signal: leave.signal, passive: true });
  }
  const again = () => {
    if (leave.signal.aborted || mine !== current) return;
    window.scrollTo({ top });
    if (Math.abs(window.scrollY - top) > 2 && Date.now() < until) window.requestAnimationFrame(again);
    else leave.abort();
  };
  window.requestAnimationFrame(again);
}
