// One pool: who works, in what health, and between which bounds; the bounds can be changed while it runs.
import { useState } from "preact/hooks";
import { act } from "../../live/actions";
import { href } from "../../live/route";
import { HealthBadge } from "../../parts/badge";
import { Button } from "../../parts/button";
import { Card } from "../../parts/card";
import { Data } from "../../parts/data";
import { Facts } from "../../parts/facts";
import { CrewGauge, WaitGauge } from "../../parts/gauges";
import { Icon } from "../../parts/icon";
import { exact, size } from "../../text/numbers";
import { change, segment } from "../../wire/http";
import type { Pool } from "../../wire/types";
import { BoundsDialog } from "./bounds";

export function PoolCard({ pool, reload }: { pool: Pool; reload: () => void }) {
  const [isEditing, setEditing] = useState(false);
  const title = (
    <>
      Pool{" "}
      <a href={href("scaling", [pool.pool])}>
        <Data text={pool.pool} most={60} />
      </a>
    </>
  );
  return (
    <Card title={title} aside={<HealthBadge status={pool.status} />}>
      <div class="pool-top">
        <CrewGauge pool={pool} />
        <Button icon="edit" onPress={() => setEditing(true)}>
          Change bounds
        </Button>
      </div>
      {pool.reasons.map((reason) => (
        <p key={reason} class="note warn">
          <Icon name="warning" /> <Data text={reason} />
        </p>
      ))}
      {pool.override === null ? null : <Overridden pool={pool} reload={reload} />}
      <PoolFacts pool={pool} />
      {isEditing ? <BoundsDialog pool={pool} onClose={() => setEditing(false)} onDone={reload} /> : null}
    </Card>
  );
}

function PoolFacts({ pool }: { pool: Pool }) {
  const ways = pool.concurrency > 1 ? `${pool.kind}, ${pool.concurrency} jobs in each` : pool.kind;
  return (
    <Facts
      facts={[
        ["Kind", ways],
        ["Wanted", pool.wanted],
        ["Oldest wait", <WaitGauge key="wait" wait={pool.oldest_wait} limit={pool.max_wait} />],
        ["Memory", size(pool.memory)],
        ["Done, failed", `${exact(pool.done)}, ${exact(pool.failed)}`],
        ["Crashed, timed out", `${exact(pool.crashed)}, ${exact(pool.timed_out)}`],
        ["Recycled", exact(pool.recycled)],
        ["Policy", pool.policy],
        ["Nodes", pool.nodes.length],
      ]}
    />
  );
}

function Overridden({ pool, reload }: { pool: Pool; reload: () => void }) {
  const back = async () => {
    await act(
      () => change("DELETE", `pools/${segment(pool.pool)}/workers`),
      `Pool ${pool.pool} is sized as the app says`,
    );
    reload();
  };
  return (
    <p class="note">
      <Icon name="info" />
      <span>
        Changed while it runs: {pool.override!.min} to {pool.override!.max} on each node.
      </span>
      <Button tone="quiet" onPress={back}>
        As the app says
      </Button>
    </p>
  );
}
