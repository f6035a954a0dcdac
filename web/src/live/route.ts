// Addresses behind the hash: #/jobs?state=dead&queue=mail. Parsing and writing are pure; `route` follows the
// address bar. Names come from job data, so each segment is encoded.
import { cell } from "./cell";
import { arrive } from "./entries";

export interface Route {
  page: string;
  rest: string[];
  query: Record<string, string[]>;
}

export function parseRoute(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [page = "", ...rest] = path.split("/").filter(Boolean).map(decode);
  const query: Record<string, string[]> = {};
  for (const [name, value] of new URLSearchParams(search)) (query[name] ??= []).push(value);
  return { page: page || "overview", rest, query };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // not ours; shown as it is
  }
}

export type RouteQuery = Record<string, string | readonly string[] | null | undefined>;

export function href(page: string, rest: readonly string[] = [], query: RouteQuery = {}): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of typeof value === "string" ? [value] : value) pairs.append(name, one);
  }
  const search = pairs.toString();
  return `#/${[page, ...rest].map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

export const route = cell<Route>(parseRoute(typeof location === "undefined" ? "" : location.hash));

export function followAddress(): void {
  history.scrollRestoration = "manual";
  arrive();
  window.addEventListener("hashchange", () => {
    arrive();
    route.set(parseRoute(location.hash));
  });
}

export function go(target: string): void {
  location.hash = target;
}

/** Changes the address without a new entry in the history: a filter being typed. */
export function replace(target: string): void {
  history.replaceState(history.state, "", target);
  route.set(parseRoute(target));
}
