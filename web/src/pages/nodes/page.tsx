// Nodes and their workers: who is there, what each does and for how long, when it will be replaced.
import { act } from "../../live/actions";
import { useCell } from "../../live/cell";
import { confirmed } from "../../live/confirm";
import { useResource } from "../../live/resource";
import { session } from "../../live/session";
import { NodeBadge } from "../../parts/badge";
import { Button } from "../../parts/button";
import { Card, Page } from "../../parts/card";
import { Data } from "../../parts/data";
import { Facts } from "../../parts/facts";
import { Icon } from "../../parts/icon";
import { Empty, Loaded } from "../../parts/quiet";
import { many, size, span } from "../../text/numbers";
import { exact } from "../../text/numbers";
import { change, segment } from "../../wire/http";
import type { NodeFacts } from "../../wire/types";
import { drainQuestion } from "./drain";
import { WorkerTable } from "./worker_table";

export function NodesPage() {
  const resource = useResource<{ nodes: NodeFacts[] }>("nodes", {}, 2);
  return (
    <Page title="Workers">
      <Loaded resource={resource} lines={8}>
        {(data) =>
          data.nodes.length ? (
            <>
              {data.nodes.map((node) => (
                <NodeCard key={node.id} node={node} all={data.nodes} reload={resource.reload} />
              ))}
            </>
          ) : (
            <Empty icon="nodes" title="No node is running">
              Jobs wait until one does: <code>millpond run jobs:app</code>
            </Empty>
          )
        }
      </Loaded>
    </Page>
  );
}

interface CardProps {
  node: NodeFacts;
  all: readonly NodeFacts[];
  reload: () => void;
}

function NodeCard({ node, all, reload }: CardProps) {
  const workers = node.workers ?? [];
  const beside = useCell(session)?.beside ?? null;
  const drain = async () => {
    if (!(await confirmed(drainQuestion(node, all, beside)))) return;
    await act(
      () => change("POST", `nodes/${segment(node.id)}/drain`),
      `Node ${node.host} drains: it finishes what runs, then stops`,
    );
    reload();
  };
  const isRunning = node.state === "live" && (node.phase === "running" || node.phase === "held");
  return (
    <Card title={<Data text={node.id} most={80} />} aside={<NodeBadge node={node} />} flush>
      <div class="node-top">
        <NodeNumbers node={node} />
        {isRunning ? (
          <Button icon="drain" onPress={drain}>
            Drain
          </Button>
        ) : null}
      </div>
      {node.store_trouble === null ? null : (
        <p class="note warn">
          <Icon name="warning" /> <Data text={node.store_trouble} />
        </p>
      )}
      {workers.length ? (
        <WorkerTable node={node} workers={workers} reload={reload} />
      ) : (
        <p class="hint inset">No workers reported.</p>
      )}
    </Card>
  );
}

function NodeNumbers({ node }: { node: NodeFacts }) {
  return (
    <Facts
      facts={[
        ["Process", <Data key="process" text={`${node.host} · ${node.pid}`} most={80} />],
        ["Up", node.age === null ? null : span(node.age)],
        ["Running", many(node.running, "job")],
        ["Workers", node.worker_count],
        [
          "Lease",
          node.lease_left === null
            ? null
            : node.lease_left > 0
              ? `${span(node.lease_left)} left`
              : `over for ${span(-node.lease_left)}`,
        ],
        ["Last round", node.round_age === null ? null : `${span(node.round_age)} ago`],
        ["Settled", node.settled === null ? null : exact(node.settled)],
        ["Unsettled", node.unsettled ? exact(node.unsettled) : null],
        ["Rescued", node.rescued ? many(node.rescued, "job") : null],
        ["Memory", memoryOf(node)],
        ["CPU", processorsOf(node)],
        ["Queues", <Data key="queues" text={node.queues.join(", ")} most={200} />],
      ]}
    />
  );
}

function processorsOf(node: NodeFacts): string | null {
  const { used, limit } = node.cpu ?? {};
  if (typeof used !== "number") return null;
  return typeof limit === "number" ? `${used.toFixed(2)} of ${many(limit, "core")}` : used.toFixed(2);
}

function memoryOf(node: NodeFacts): string | null {
  const { used, limit } = node.memory ?? {};
  if (typeof used !== "number") return null;
  return typeof limit === "number" ? `${size(used)} of ${size(limit)}` : size(used);
}
