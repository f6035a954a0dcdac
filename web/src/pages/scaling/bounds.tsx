// Changes least and most workers of a pool, on every node, within seconds and without a restart.
import { useState } from "preact/hooks";
import { act } from "../../live/actions";
import { confirmed } from "../../live/confirm";
import { feed } from "../../live/feed";
import { Button } from "../../parts/button";
import { Dialog } from "../../parts/dialog";
import { oneLine, visible } from "../../text/hostile";
import { change, segment } from "../../wire/http";
import type { Pool } from "../../wire/types";
import { boundsQuestion } from "./bounds_question";

interface Props {
  pool: Pool;
  onClose: () => void;
  onDone: () => void;
}

export function BoundsDialog({ pool, onClose, onDone }: Props) {
  const [least, setLeast] = useState(pool.min);
  const [most, setMost] = useState(pool.max);
  const isSound = Number.isInteger(least) && Number.isInteger(most) && least >= 0 && most >= 1 && most >= least;
  const save = async () => {
    const question = boundsQuestion(pool, most, feed.get().overview?.nodes ?? []);
    if (question !== null && !(await confirmed(question))) return;
    const done = `Pool ${pool.pool} may have ${least} to ${most} workers on each node`;
    const answer = await act(
      () => change("PUT", `pools/${segment(pool.pool)}/workers`, { min: least, max: most }),
      done,
    );
    if (answer === null) return;
    onDone();
    onClose();
  };
  return (
    <Dialog title={`Workers of pool ${visible(oneLine(pool.pool, 60))}`} onClose={onClose}>
      <p class="hint">On each node. Scaling down never stops a running job: a worker leaves when it is idle.</p>
      <div class="fields">
        <label class="field">
          At least
          <input type="number" min="0" value={least} onInput={(event) => setLeast(event.currentTarget.valueAsNumber)} />
        </label>
        <label class="field">
          At most
          <input type="number" min="1" value={most} onInput={(event) => setMost(event.currentTarget.valueAsNumber)} />
        </label>
      </div>
      <div class="dialog-actions">
        <Button tone="primary" disabled={!isSound} onPress={save}>
          Set
        </Button>
      </div>
    </Dialog>
  );
}
