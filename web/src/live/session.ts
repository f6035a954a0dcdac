// Who this browser is to the server, and the one dialog that asks for a token. An action that is refused for
// want of a token waits here until it was given, and is then done.
import { change, read, Refused } from "../wire/http";
import type { Session } from "../wire/types";
import { cell } from "./cell";

export const session = cell<Session | null>(null);

/** Open while somebody must give a token; answers whether it was given. */
export const asking = cell<((given: boolean) => void) | null>(null);

export function hearSession(fresh: Session): void {
  const old = session.get();
  if (old === null || JSON.stringify(old) !== JSON.stringify(fresh)) session.set(fresh);
}

export async function loadSession(): Promise<void> {
  hearSession(await read<Session>("session"));
}

export async function logIn(token: string): Promise<void> {
  hearSession(await change<Session>("POST", "session", { token }));
}

export async function logOut(): Promise<void> {
  hearSession(await change<Session>("DELETE", "session"));
}

/**
 * A session that has ended is worse than none: its cookie has everything refused. When that is so, it is put
 * away, and whoever may read without a token reads on.
 */
export async function dropEndedSession(): Promise<void> {
  try {
    await read("events/recent", { limit: 1 });
  } catch (error) {
    if (error instanceof Refused && error.problem.status === 401) await logOut();
  }
}

export function askForToken(): Promise<boolean> {
  asking.get()?.(false);
  return new Promise((resolve) => {
    asking.set((given) => {
      asking.set(null);
      resolve(given);
    });
  });
}

/** May this person see anything at all? */
export function mayRead(known: Session): boolean {
  return known.scope !== "none" || known.open_reads;
}
