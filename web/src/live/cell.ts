// A value that tells who watches it. The page's whole state is a few of these; a component watches the part it
// shows and redraws only when that part is another object.
import { useEffect, useState } from "preact/hooks";

export interface Cell<T> {
  get(): T;
  set(value: T): void;
  watch(hear: (value: T) => void): () => void;
}

export function cell<T>(initial: T): Cell<T> {
  let current = initial;
  const watchers = new Set<(value: T) => void>();
  return {
    get: () => current,
    set(value) {
      if (Object.is(value, current)) return;
      current = value;
      for (const hear of [...watchers]) hear(value);
    },
    watch(hear) {
      watchers.add(hear);
      return () => void watchers.delete(hear);
    },
  };
}

/** The chosen part of a cell, drawn again when it changes. */
export function useCell<T, P = T>(source: Cell<T>, choose: (value: T) => P = (value) => value as unknown as P): P {
  const [, redraw] = useState(0);
  const part = choose(source.get());
  useEffect(() => {
    let shown = part;
    const hear = (value: T) => {
      const next = choose(value);
      if (Object.is(next, shown)) return;
      shown = next;
      redraw((turn) => turn + 1);
    };
    hear(source.get());
    return source.watch(hear);
  });
  return part;
}
