// A document read from the server, kept while it is read again. A failure keeps what was there and says so; it
// is never an empty page. Reading pauses while the tab is hidden.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { isGone, type Query, read, withQuery } from "../wire/http";
import { useCell } from "./cell";
import { feed } from "./feed";

export interface Resource<T> {
  data: T | null;
  error: unknown;
  isLoading: boolean;
  reload(): void;
}

interface Held<T> {
  address: string;
  data: T | null;
  error: unknown;
}

/** Reads `path` now and every `every` seconds, and when the connection comes back. A null path reads nothing. */
export function useResource<T>(path: string | null, query: Query = {}, every = 5): Resource<T> {
  const address = path === null ? "" : withQuery(path, query);
  const [held, setHeld] = useState<Held<T>>({ address, data: null, error: null });
  const turn = useRef(0);
  const asked = useRef(""); // what is being asked: a slow answer must not be asked for again and again
  const isOver = useRef(""); // an address with nothing behind it: asking again would change nothing
  const isLost = useCell(feed, (value) => value.link === "lost");

  const load = useCallback(async () => {
    if (address === "" || document.hidden || asked.current === address || isOver.current === address) return;
    asked.current = address;
    const mine = ++turn.current;
    try {
      const data = await read<T>(address);
      if (mine === turn.current) setHeld({ address, data, error: null });
    } catch (error) {
      if (isGone(error)) isOver.current = address;
      if (mine === turn.current) {
        setHeld((old) => ({ address, data: old.address === address ? old.data : null, error }));
      }
    } finally {
      if (asked.current === address) asked.current = "";
    }
  }, [address]);

  useEffect(() => {
    void load();
    const timer = window.setInterval(() => void load(), every * 1000);
    document.addEventListener("visibilitychange", load);
    return () => {
      turn.current += 1;
      asked.current = "";
      window.clearInterval(timer);
      document.removeEventListener("visibilitychange", load);
    };
  }, [load, every, isLost]);

  const isMine = held.address === address;
  const data = isMine ? held.data : null;
  const error = isMine ? held.error : null;
  return { data, error, isLoading: data === null && error === null, reload: () => void load() };
}
