// Speaks to the server: relative addresses (it may live under a prefix), JSON both ways, and every failure as
// a Refused with a sentence for people. The session travels in a cookie that scripts cannot read.
import type { Problem } from "./types";

const ROOT = "api/v1/";
const PATIENCE = 20_000;

export class Refused extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.title);
    this.problem = problem;
  }

  get needsToken(): boolean {
    return this.problem.status === 401 || this.problem.type.endsWith(":needs-admin");
  }
}

export type Query = Record<string, string | number | readonly string[] | null | undefined>;

/** Adds a query; empty values are left out, lists repeat their name. */
export function withQuery(path: string, query: Query = {}): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) pairs.append(name, String(one));
  }
  const text = pairs.toString();
  return text ? `${path}?${text}` : path;
}

export function read<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
  return send<T>("GET", withQuery(path, query), undefined, signal);
}

export function change<T>(method: "POST" | "PUT" | "DELETE", path: string, body: unknown = {}): Promise<T> {
  return send<T>(method, path, body);
}

async function send<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const request: RequestInit = {
    method,
    credentials: "same-origin",
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    signal: signal ? AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]) : AbortSignal.timeout(PATIENCE),
  };
  if (body !== undefined) request.body = JSON.stringify(body);
  let answer: Response;
  try {
    answer = await fetch(ROOT + path, request);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused(unreachable(error));
  }
  const document: unknown = await answer.json().catch(() => null);
  if (!answer.ok) throw new Refused(problemOf(answer, document));
  return document as T;
}

function unreachable(error: unknown): Problem {
  const isSlow = error instanceof DOMException && error.name === "TimeoutError";
  return {
    type: "urn:millpond:problem:unreachable",
    title: isSlow ? "The server did not answer in 20 s" : "The server cannot be reached",
    status: 0,
    fix: "The page tries again by itself.",
  };
}

function problemOf(answer: Response, document: unknown): Problem {
  if (document !== null && typeof document === "object" && "title" in document) return document as Problem;
  return { type: "about:blank", title: `The server answered ${answer.status}`, status: answer.status };
}

/** Is there nothing behind the address? */
export function isGone(error: unknown): boolean {
  return error instanceof Refused && error.problem.status === 404;
}

const GONE = "It never was, or it has been deleted since.";

/** What went wrong, in words, whatever was thrown. */
export function sentence(error: unknown): string {
  if (!(error instanceof Refused)) return String(error);
  const { title, detail, fix, errors } = error.problem;
  const fields = (errors ?? []).map((one) => `${one.where}: ${one.message}`);
  const said = detail || title;
  const parts = [said, ...fields.filter((one) => !said.includes(one)), isGone(error) ? !said.includes("never was") && GONE : fix];
  return parts.filter(Boolean).join(". ").replaceAll("..", ".");
}

export function segment(name: string | number): string {
  return encodeURIComponent(String(name));
}
