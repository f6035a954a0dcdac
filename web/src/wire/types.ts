// The documents of the HTTP interface, as the server writes them. Instants are ISO text in UTC, durations
// seconds, sizes bytes. Every text here may have been chosen by whoever enqueued a job: show it as text.

export type JobState = "blocked" | "scheduled" | "queued" | "running" | "completed" | "dead" | "cancelled";
export type States = Record<JobState, number>;

export interface Session {
  scope: "admin" | "read" | "none";
  open_reads: boolean;
  expires_at: string | null;
  name: string | null;
  actions: boolean;
  app: string | null;
  version: string;
  token_file: string | null;
  beside: { host: string; pid: number } | null; // the node that this server was started with
}

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail?: string;
  fix?: string;
  errors?: { where: string; message: string }[];
}

export interface StoreFacts {
  url: string;
  durability: string;
  ok: boolean;
  trouble: string | null;
}

export interface Totals {
  queued: number;
  running: number;
  scheduled: number;
  blocked: number;
  dead: number;
  completed: number;
  cancelled: number;
  begun: number; // jobs that run, as the nodes tell
  claimed: number; // jobs that a node has taken and not begun
  workers: number;
  busy: number;
  nodes: number;
  per_minute: number | null;
  failed_per_minute: number | null;
  wait_p95: number | null;
}

export interface Recent {
  seconds: number;
  enqueued: number;
  completed: number;
  dead: number;
  cancelled: number;
  retried: number;
  per_minute: number; // completed, over the last minute and the one that is not over yet
  failed_per_minute: number;
  wait_p50: number | null;
  wait_p95: number | null;
  run_p50: number | null;
  run_p95: number | null;
}

export interface Queue {
  queue: string;
  paused: boolean;
  rate: number | null;
  states: States;
  oldest: number | null;
  max_wait: number | null;
  pools: string[];
  nodes: number;
  recent: Recent;
}

export interface QueueDetail extends Queue {
  pool_items: Pool[];
  tasks: string[];
}

export interface Decision {
  number: number;
  at: string;
  pool: string;
  node: string | null;
  from: number;
  to: number;
  current: number | null;
  target: number | null;
  action: "grow" | "shrink" | "stay" | null;
  queue_depth: number | null;
  busy_workers: number | null;
  text: string;
  shadow: boolean;
  capped: string | null;
  terms: Record<string, unknown>;
}

export interface Override {
  min: number;
  max: number;
}

export interface Pool {
  pool: string;
  queues: string[];
  kind: string;
  concurrency: number;
  min: number;
  max: number;
  workers: number;
  busy: number;
  idle: number;
  starting: number;
  draining: number;
  running: number;
  wanted: number | null;
  max_wait: number | null;
  oldest_wait: number | null;
  waiting: number | null;
  done: number;
  failed: number;
  crashed: number;
  timed_out: number;
  recycled: number;
  memory: number | null;
  status: "ok" | "degraded" | "failed";
  reasons: string[];
  nodes: string[];
  policy: string | null;
  override: Override | null;
  decision: Decision | null;
}

export interface WorkerRow {
  id: string;
  node: string;
  pool: string;
  pid: number;
  state: "starting" | "idle" | "busy" | "draining" | "dead";
  job: string | null;
  task: string | null;
  running_for: number | null;
  rss: number | null;
  cpu: number | null;
  done: number;
  completed: number | null;
  failed: number;
  age: number | null;
  started_at: string | null;
  job_started_at: string | null;
  last_seen_at: string | null;
  last_seen: string | number | null;
  recycle: { jobs_left: number | null; memory_left: number | null; age_left: number | null } | null;
}

export interface NodeFacts {
  id: string;
  host: string;
  pid: number;
  state: "live" | "silent" | "rescued";
  phase: "running" | "held" | "draining" | "starting" | "stopped" | null;
  lease_left: number | null;
  running: number;
  age: number | null;
  started_at: string | null;
  round_age: number | null;
  store_trouble: string | null;
  unsettled: number | null;
  settled: number | null;
  rescued: number | null;
  queues: string[];
  pools: string[];
  reported_at: string | null;
  cpu: { used: number | null; limit: number | null } | null;
  memory: Record<string, unknown> | null;
  worker_count: number;
  workers?: WorkerRow[];
}

export interface Alert {
  level: "warning" | "error";
  kind: string;
  subject: string;
  text: string;
  since: string | null;
}

export interface RecurringTotals {
  total: number;
  enabled: number;
  disabled: number;
  open: number;
  running: number;
}

export interface Overview {
  at: string;
  version: string;
  app: string | null;
  store: StoreFacts;
  totals: Totals;
  queues: Queue[];
  pools: Pool[];
  nodes: NodeFacts[];
  alerts: Alert[];
  recurring: RecurringTotals | null;
  decisions: Decision[];
}

export interface Delta extends Partial<Omit<Overview, "at" | "version" | "app">> {
  at: string;
  removed?: { queues?: string[]; pools?: string[]; nodes?: string[] };
}

export interface Happening {
  number: number;
  at: string;
  node: string | null;
  kind: string;
  level: "error" | "warning" | "info";
  text: string;
  folded: number;
  facts: Record<string, unknown>;
}

export interface Progress {
  share: number | null;
  note: string | null;
}

export interface JobRow {
  id: string;
  task: string;
  queue: string;
  state: JobState;
  reason: string | null;
  priority: number;
  attempt: number;
  max_attempts: number;
  errors: number; // attempts that count against max_attempts
  created_at: string;
  run_at: string | null;
  started_at: string | null;
  finished_at: string | null;
  node: string | null;
  cancelling: boolean;
  parked: string | null;
  arguments: string | null;
  error: string | null;
  message: string | null;
  wait: number | null;
  run: number | null;
  progress: Progress | null;
  recurring?: string | null;
}

export interface Attempt {
  number: number;
  node: string | null;
  worker: number | string | null;
  started_at: string | null;
  ended_at: string | null;
  ended: string | null;
  error: string | null;
  message: string | null;
  traceback: string | null;
  wait?: number | null;
  run: number | null;
}

export interface JobDetail extends JobRow {
  why: string | null;
  payload: unknown;
  result: unknown;
  attempts: Attempt[];
  unique: string | null;
  slots: { name: string; capacity: number }[];
  depends_on: string[];
  parents: { id: string; task: string; state: JobState }[];
  options: Record<string, unknown>;
  expires_at: string | null;
  crashes: number;
  lost: number;
  token: number;
  rank: number;
  alone: boolean;
  can: { cancel: boolean; retry: boolean; discard: boolean };
}

export interface JobPage {
  jobs: JobRow[];
  cursor: string | null;
  scanned: number;
}

export interface BulkAnswer {
  action: string;
  dry_run: boolean;
  matched: number;
  changed: number;
  scanned: number;
  cursor: string | null;
  sample: JobRow[];
}

export interface Cause {
  cause: string;
  task: string;
  queue: string;
  reason: string | null;
  error: string | null;
  message: string | null;
  count: number;
  first_at: string | null;
  last_at: string | null;
  example: string;
  filter: Record<string, unknown>;
}

export interface CausePage {
  causes: Cause[];
  scanned: number;
  total: number;
  complete: boolean;
}

export interface Recurring {
  name: string;
  task: string;
  queue: string;
  mode: "scheduled" | "triggered" | "continuous";
  cadence: string | null;
  enabled: boolean;
  disabled_by: "breaker" | "admin" | null;
  breaker: "closed" | "open" | "half-open";
  failures: number;
  max_failures: number;
  next_at: string | null;
  last_at: string | null;
  last_outcome?: string | null;
  last_success_at?: string | null;
  last_failure_at?: string | null;
  last_error?: string | null;
  last_skip?: string | null;
  running: number;
  depends_on: { name: string; mode: string }[];
  blocks: string[];
  why: string | null;
}

export interface Tick {
  at: string;
  job: string | null;
  state: string;
  started_at: string | null;
  finished_at: string | null;
  run: number | null;
  reason: string | null;
  error: string | null;
}

export interface SeriesOf {
  enqueued: number[];
  completed: number[];
  dead: number[];
  cancelled: number[];
  retried: number[];
  open: (number | null)[];
  wait_p50: (number | null)[];
  wait_p95: (number | null)[];
  run_p50: (number | null)[];
  run_p95: (number | null)[];
}

export interface Statistics {
  window: string;
  step: number;
  times: number[];
  queues: Record<string, SeriesOf>; // of the busiest, or of those that were asked for
  other: SeriesOf; // all others together
  all: SeriesOf;
}

export interface TaskFacts {
  task: string;
  queue: string;
  kind: string;
  priority: number;
  timeout: number | null;
  parameters: { name: string; annotation: string | null; required: boolean; default: string | null }[];
  recurring: boolean;
}
