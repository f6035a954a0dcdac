// Confirms a bulk action with the number it would touch, shows its progress, and what came of it.
import { useEffect, useRef, useState } from "preact/hooks";
import { withToken } from "../../live/actions";
import { Button } from "../../parts/button";
import { Data } from "../../parts/data";
import { Dialog } from "../../parts/dialog";
import { Icon } from "../../parts/icon";
import { Loading } from "../../parts/quiet";
import { exact, many } from "../../text/numbers";
import { visible } from "../../text/hostile";
import { sentence } from "../../wire/http";
import type { BulkAnswer } from "../../wire/types";
import { type Bulk, countBulk, type Report, runBulk, type Verb } from "./bulk";

const WORDS: Record<Verb, { title: string; press: string; done: string; warning: string }> = {
  replay: {
    title: "Replay jobs",
    press: "Replay",
    done: "replayed",
    warning: "They get fresh attempts and go back into their queues.",
  },
  discard: {
    title: "Discard jobs",
    press: "Discard",
    done: "discarded",
    warning: "They are deleted, with their history. This cannot be undone.",
  },
  cancel: {
    title: "Cancel jobs",
    press: "Cancel them",
    done: "cancelled",
    warning: "Waiting jobs end at once; running ones are asked to stop.",
  },
};

interface Props {
  bulk: Bulk;
  subject: string;
  onClose: () => void;
  onDone: () => void;
}

type Step =
  | { is: "counting" }
  | { is: "asking"; answer: BulkAnswer }
  | { is: "working"; report: Report }
  | { is: "done"; report: Report; wasStopped: boolean }
  | { is: "failed"; text: string };

export function BulkDialog({ bulk, subject, onClose, onDone }: Props) {
  const [step, setStep] = useState<Step>({ is: "counting" });
  const expected = useRef(0);
  const isStopped = useRef(false);
  const words = WORDS[bulk.action];
  const guard = (doing: () => Promise<void>) =>
    doing().catch((error) => setStep({ is: "failed", text: sentence(error) }));
  const count = async () => {
    const answer = await withToken(() => countBulk(bulk));
    if (answer === null) return onClose();
    expected.current = answer.matched;
    setStep({ is: "asking", answer });
  };
  const run = async () => {
    setStep({ is: "working", report: { changed: 0, matched: 0 } });
    const report = await runBulk(
      bulk,
      (so_far) => setStep({ is: "working", report: so_far }),
      () => isStopped.current,
    );
    setStep({ is: "done", report, wasStopped: isStopped.current });
    onDone();
  };
  useEffect(() => {
    void guard(count);
    return () => void (isStopped.current = true);
  }, []);
  return (
    <Dialog title={words.title} onClose={onClose}>
      <p>
        <Data text={subject} />
      </p>
      <div aria-live="polite">
        <StepView step={step} bulk={bulk} expected={expected.current} />
      </div>
      <div class="dialog-actions">
        {step.is === "asking" ? (
          <>
            <Button onPress={onClose}>Back</Button>
            <Button
              tone={bulk.action === "replay" ? "primary" : "danger"}
              disabled={step.answer.matched === 0}
              onPress={() => guard(run)}
            >
              {words.press} {step.answer.matched ? exact(step.answer.matched) + (step.answer.cursor ? "+" : "") : ""}
            </Button>
          </>
        ) : step.is === "working" ? (
          <Button icon="stop" onPress={() => void (isStopped.current = true)}>
            Stop
          </Button>
        ) : step.is === "counting" ? null : (
          <Button onPress={onClose}>Close</Button>
        )}
      </div>
    </Dialog>
  );
}

function StepView({ step, bulk, expected }: { step: Step; bulk: Bulk; expected: number }) {
  const words = WORDS[bulk.action];
  switch (step.is) {
    case "counting":
      return <Loading lines={2} />;
    case "asking":
      return <Asking answer={step.answer} warning={words.warning} />;
    case "working":
      return (
        <>
          <progress
            class="wide"
            value={step.report.matched}
            max={Math.max(expected, step.report.matched, 1)}
            aria-label="Progress"
          />
          <p class="hint">
            {exact(step.report.changed)} of {exact(expected)} {words.done}
          </p>
        </>
      );
    case "done":
      return (
        <p class="note ok">
          <Icon name="check" /> {many(step.report.changed, "job")} {words.done}
          {step.wasStopped ? ", then stopped" : ""}
        </p>
      );
    case "failed":
      return (
        <p class="form-error">
          <Icon name="warning" /> {visible(step.text)}
        </p>
      );
  }
}

function Asking({ answer, warning }: { answer: BulkAnswer; warning: string }) {
  if (answer.matched === 0) return <p class="hint">No job matches any more.</p>;
  return (
    <>
      <p>
        <b>
          {answer.cursor ? "At least " : ""}
          {many(answer.matched, "job")}
        </b>{" "}
        would change. {warning}
      </p>
      <ul class="sample">
        {answer.sample.map((row) => (
          <li key={row.id}>
            <code>
              <Data text={row.task} most={60} />
            </code>{" "}
            <span class="faint">
              <Data text={row.message ?? row.arguments} most={100} />
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}
