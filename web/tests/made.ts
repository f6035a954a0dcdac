// Documents for the tests, with only what a test names being other than usual.
import type {
  Decision,
  Happening,
  JobDetail,
  JobRow,
  NodeFacts,
  Overview,
  Pool,
  Queue,
  Recurring,
} from "../src/wire/types";

export function queue(name: string, queued = 0): Queue {
  return {
    queue: name,
    paused: false,
    rate: null,
    states: { blocked: 0, scheduled: 0, queued, running: 0, completed: 0, dead: 0, cancelled: 0 },
    oldest: null,
    max_wait: 10,
    pools: [name],
    nodes: 1,
    recent: {
      seconds: 300,
      enqueued: 0,
      completed: 300,
      dead: 0,
      cancelled: 0,
      retried: 0,
      per_minute: 60,
      failed_per_minute: 0,
      wait_p50: null,
      wait_p95: null,
      run_p50: null,
      run_p95: null,
    },
  };
}

export function pool(name: string, part: Partial<Pool> = {}): Pool {
  return {
    pool: name,
    queues: [name],
    kind: "process",
    concurrency: 1,
    min: 1,
    max: 4,
    workers: 1,
    busy: 0,
    idle: 1,
    starting: 0,
    draining: 0,
    running: 0,
    wanted: 1,
    max_wait: 10,
    oldest_wait: null,
    waiting: 0,
    done: 0,
    failed: 0,
    crashed: 0,
    timed_out: 0,
    recycled: 0,
    memory: null,
    status: "ok",
    reasons: [],
    nodes: ["n"],
    policy: null,
    override: null,
    decision: null,
    ...part,
  };
}

export function node(id: string, part: Partial<NodeFacts> = {}): NodeFacts {
  return {
    id,
    host: id,
    pid: 1,
    state: "live",
    phase: "running",
    lease_left: 15,
    running: 0,
    age: 60,
    started_at: null,
    round_age: 0,
    store_trouble: null,
    unsettled: 0,
    settled: 0,
    rescued: 0,
    queues: [],
    pools: [],
    reported_at: null,
    cpu: null,
    memory: null,
    worker_count: 0,
    ...part,
  };
}

export function overview(part: Partial<Overview> = {}): Overview {
  return {
    at: "2026-11-16T05:30:00.000000Z",
    version: "0.1",
    app: "jobs:app",
    store: { url: "memory://", durability: "none", ok: true, trouble: null },
    totals: {
      queued: 0,
      running: 0,
      scheduled: 0,
      blocked: 0,
      dead: 0,
      completed: 0,
      cancelled: 0,
      begun: 0,
      claimed: 0,
      workers: 0,
      busy: 0,
      nodes: 0,
      per_minute: 0,
      failed_per_minute: 0,
      wait_p95: null,
    },
    queues: [],
    pools: [],
    nodes: [],
    alerts: [],
    recurring: null,
    decisions: [],
    ...part,
  };
}

export function row(id: string, part: Partial<JobRow> = {}): JobRow {
  return {
    id,
    task: "resize",
    queue: "images",
    state: "queued",
    reason: null,
    priority: 1,
    attempt: 0,
    max_attempts: 5,
    errors: 0,
    created_at: "2026-11-16T05:30:00.000000Z",
    run_at: null,
    started_at: null,
    finished_at: null,
    node: null,
    cancelling: false,
    parked: null,
    arguments: "{}",
    error: null,
    message: null,
    wait: null,
    run: null,
    progress: null,
    ...part,
  };
}

export function job(part: Partial<JobDetail> = {}): JobDetail {
  return {
    ...row("1"),
    why: null,
    payload: {},
    result: null,
    attempts: [],
    unique: null,
    slots: [],
    depends_on: [],
    parents: [],
    options: {},
    expires_at: null,
    crashes: 0,
    lost: 0,
    token: 1,
    rank: 1,
    alone: false,
    can: { cancel: false, retry: false, discard: false },
    ...part,
  };
}

export function happening(number: number, text = `event ${number}`): Happening {
  return {
    number,
    at: "2026-11-16T05:30:00.000000Z",
    node: null,
    kind: "JobDied",
    level: "error",
    text,
    folded: 0,
    facts: {},
  };
}

export function decision(at: string, from: number, to: number, part: Partial<Decision> = {}): Decision {
  return {
    number: 1,
    at,
    pool: "images",
    node: "n",
    from,
    to,
    current: from,
    target: to,
    action: to > from ? "grow" : to < from ? "shrink" : "stay",
    queue_depth: null,
    busy_workers: null,
    text: "",
    shadow: false,
    capped: null,
    terms: {},
    ...part,
  };
}

export function recurring(name: string, after: string[] = [], blocks: string[] = []): Recurring {
  return {
    name,
    task: name,
    queue: "default",
    mode: "scheduled",
    cadence: "every 60 s",
    enabled: true,
    disabled_by: null,
    breaker: "closed",
    failures: 0,
    max_failures: 5,
    next_at: null,
    last_at: null,
    running: 0,
    depends_on: after.map((one) => ({ name: one, mode: "success_since" })),
    blocks,
    why: null,
  };
}
