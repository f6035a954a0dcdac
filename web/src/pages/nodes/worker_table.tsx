// The workers of a node in rows, windowed: a fleet may have hundreds.
import { act } from "../../live/actions";
import { confirmed } from "../../live/confirm";
import { href } from "../../live/route";
import { WorkerBadge } from "../../parts/badge";
import { Button } from "../../parts/button";
import { Data, Name } from "../../parts/data";
import { type Column, Rows } from "../../parts/rows";
import { exact, size, span } from "../../text/numbers";
import { change, segment } from "../../wire/http";
import type { NodeFacts, WorkerRow } from "../../wire/types";
import { countdown } from "./countdown";

interface Props {
  node: NodeFacts;
  workers: readonly WorkerRow[];
  reload: () => void;
}

export function WorkerTable({ node, workers, reload }: Props) {
  const recycle = async (worker: WorkerRow) => {
    const text = `Worker ${worker.pid} of pool ${worker.pool} is replaced by a fresh one once its job is done.`;
    if (!(await confirmed({ title: "Recycle the worker", text: [text], press: "Recycle" }))) return;
    const address = `nodes/${segment(node.id)}/workers/${worker.pid}/recycle`;
    await act(() => change("POST", address), `Worker ${worker.pid} is replaced once its job is done`);
    reload();
  };
  const act_column: Column<WorkerRow> = {
    key: "act",
    title: <span class="unseen">Actions</span>,
    cell: (worker) => (
      <Button icon="recurring" tone="quiet" label={`Recycle worker ${worker.pid}`} onPress={() => recycle(worker)} />
    ),
  };
  return (
    <Rows
      kind="workers"
      caption={`Workers of node ${node.id}`}
      rows={workers}
      columns={[...COLUMNS, act_column]}
      keyOf={(worker) => `${worker.pool}/${worker.pid}`}
      height={{ wide: 44, narrow: 84 }}
    />
  );
}

const COLUMNS: readonly Column<WorkerRow>[] = [
  { key: "state", title: "State", cell: (worker) => <WorkerBadge state={worker.state} /> },
  { key: "pool", title: "Pool", cell: (worker) => <Data text={worker.pool} most={60} /> },
  { key: "pid", title: "Process", cell: (worker) => <span class="mono">{worker.pid}</span> },
  { key: "job", title: "Current job", cell: (worker) => <Current worker={worker} /> },
  { key: "memory", title: "Memory", cell: (worker) => size(worker.rss) },
  { key: "cpu", title: "CPU used", cell: (worker) => span(worker.cpu) },
  {
    key: "done",
    title: "Done",
    cell: (worker) => (
      <>
        {exact(worker.done)}
        {worker.failed ? <span class="faint"> · {exact(worker.failed)} failed</span> : null}
      </>
    ),
  },
  { key: "age", title: "Age", cell: (worker) => span(worker.age) },
  { key: "recycle", title: "Recycled", cell: (worker) => <span class="faint">{countdown(worker.recycle)}</span> },
];

function Current({ worker }: { worker: WorkerRow }) {
  if (worker.task === null && worker.job === null) return <span class="faint">–</span>;
  const name = <Name text={worker.task ?? worker.job ?? ""} />;
  return (
    <span>
      {worker.job === null ? name : <a href={href("jobs", [worker.job])}>{name}</a>}
      {worker.running_for === null ? null : <span class="faint"> for {span(worker.running_for)}</span>}
    </span>
  );
}
