// How often a job was tried, against how often it may fail. Crashes, lost nodes and snoozes are attempts that cost
// nothing, so there may be more attempts than are allowed to fail. Pure.
import { many } from "./numbers";

interface Tried {
  attempt: number;
  errors: number;
  max_attempts: number;
}

/** 3/5 where each attempt failed; else the attempts alone: 3 of 2 would be no fraction. */
export function limitOf({ attempt, errors, max_attempts }: Tried): string {
  return errors === attempt ? `/${max_attempts}` : "";
}

export function attemptsInWords({ attempt, errors, max_attempts }: Tried): string {
  return `${many(attempt, "attempt")}, ${errors} of ${max_attempts} failed`;
}
