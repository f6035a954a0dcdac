// Sets how many jobs a second a queue may start, or none.
import { useState } from "preact/hooks";
import { act } from "../../live/actions";
import { Button } from "../../parts/button";
import { Dialog } from "../../parts/dialog";
import { change, segment } from "../../wire/http";
import type { Queue } from "../../wire/types";

export function RateDialog({ queue, onClose }: { queue: Queue; onClose: () => void }) {
  const [text, setText] = useState(queue.rate ? String(queue.rate) : "");
  const save = async (rate: number | null) => {
    const done =
      rate === null ? `Queue ${queue.queue} has no limit` : `Queue ${queue.queue} starts at most ${rate} jobs a second`;
    const answer = await act(() => change("PUT", `queues/${segment(queue.queue)}/rate`, { rate }), done);
    if (answer !== null) onClose();
  };
  const value = Number(text);
  return (
    <Dialog title="Limit the rate" onClose={onClose}>
      <label class="field">
        Jobs a second, over all nodes
        <input
          type="number"
          min="0.001"
          step="any"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <div class="dialog-actions">
        {queue.rate ? <Button onPress={() => save(null)}>No limit</Button> : null}
        <Button tone="primary" disabled={!(value > 0)} onPress={() => save(value)}>
          Set
        </Button>
      </div>
    </Dialog>
  );
}
