// What can be done with the chosen jobs, or with all that match the filter.
import { useState } from "preact/hooks";
import { serverNow } from "../../live/feed";
import { Button } from "../../parts/button";
import { many } from "../../text/numbers";
import type { Bulk, Verb } from "./bulk";
import { BulkDialog } from "./bulk_dialog";
import { bulkFilter, isEmpty, type JobFilter } from "./filter";
import { verbsFor } from "./verbs";

interface Props {
  filter: JobFilter;
  chosen: ReadonlySet<string>;
  onClear: () => void;
  onDone: () => void;
}

export function BulkBar({ filter, chosen, onClear, onDone }: Props) {
  const [bulk, setBulk] = useState<Bulk | null>(null);
  const isOfChosen = chosen.size > 0;
  if (!isOfChosen && isEmpty(filter) && bulk === null) return null;
  const start = (action: Verb) =>
    setBulk(isOfChosen ? { action, ids: [...chosen] } : { action, filter: bulkFilter(filter, serverNow()) });
  const subject = isOfChosen ? many(chosen.size, "chosen job") : "All jobs that match the filter";
  const verbs = verbsFor(filter, isOfChosen);
  return (
    <div class={isOfChosen ? "bulk-bar active" : "bulk-bar"}>
      <span class="bulk-subject">{subject}</span>
      {verbs.includes("replay") ? (
        <Button icon="retry" onPress={() => start("replay")}>
          Replay
        </Button>
      ) : null}
      {verbs.includes("cancel") ? (
        <Button icon="cancel" onPress={() => start("cancel")}>
          Cancel
        </Button>
      ) : null}
      {verbs.includes("discard") ? (
        <Button icon="trash" onPress={() => start("discard")}>
          Discard
        </Button>
      ) : null}
      {isOfChosen ? (
        <Button tone="quiet" onPress={onClear}>
          Clear
        </Button>
      ) : null}
      {bulk === null ? null : (
        <BulkDialog bulk={bulk} subject={subject} onClose={() => setBulk(null)} onDone={onDone} />
      )}
    </div>
  );
}
