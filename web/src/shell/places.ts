// The pages that can be reached from everywhere, with their keys.
import type { IconName } from "../parts/icon";

export interface Place {
  page: string;
  word: string;
  more?: string; // the rest of it, where there is room
  icon: IconName;
  key: string;
}

export const PLACES: readonly Place[] = [
  { page: "overview", word: "Overview", icon: "overview", key: "o" },
  { page: "jobs", word: "Jobs", icon: "jobs", key: "j" },
  { page: "dead", word: "Dead", more: "letters", icon: "dead", key: "d" },
  { page: "nodes", word: "Workers", icon: "nodes", key: "w" },
  { page: "recurring", word: "Recurring", icon: "recurring", key: "r" },
  { page: "scaling", word: "Scaling", icon: "scaling", key: "s" },
];
