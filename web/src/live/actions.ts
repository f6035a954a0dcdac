// Carries out what a person asked for: sends it, asks for the token when one is missing, and says what came of
// it in a toast that screen readers hear too.
import { Refused, sentence } from "../wire/http";
import { cell } from "./cell";
import { askForToken, session } from "./session";

export interface Toast {
  key: number;
  isError: boolean;
  text: string;
}

export const toasts = cell<readonly Toast[]>([]);
let nextKey = 1;

export function tell(text: string, isError = false): void {
  const toast = { key: nextKey++, isError, text };
  toasts.set([...toasts.get().slice(-3), toast]);
  window.setTimeout(() => dismiss(toast.key), isError ? 12_000 : 5_000);
}

export function dismiss(key: number): void {
  toasts.set(toasts.get().filter((one) => one.key !== key));
}

/** Does it, and answers what the server said; null when it did not happen (the person has been told why). */
export async function act<T>(doing: () => Promise<T>, done?: string | ((answer: T) => string)): Promise<T | null> {
  try {
    const answer = await withToken(doing);
    if (answer !== null && done !== undefined) tell(typeof done === "string" ? done : done(answer));
    return answer;
  } catch (error) {
    tell(sentence(error), true);
    return null;
  }
}

/** Asks for the token first where none is there, and once more where it was refused; null when not given. */
export async function withToken<T>(doing: () => Promise<T>): Promise<T | null> {
  if (session.get()?.scope !== "admin" && !(await askForToken())) return null;
  try {
    return await doing();
  } catch (error) {
    if (!(error instanceof Refused) || !error.needsToken) throw error;
    return (await askForToken()) ? await doing() : null;
  }
}
