// Triggers, enables and disables a recurring task. Enabling also closes its breaker.
import { act } from "../../live/actions";
import { confirmed } from "../../live/confirm";
import { Button } from "../../parts/button";
import { change, segment } from "../../wire/http";
import type { Recurring } from "../../wire/types";

interface Props {
  item: Recurring;
  reload: () => void;
  isShort?: boolean;
}

export function RecurringActions({ item, reload, isShort = false }: Props) {
  const address = `recurring/${segment(item.name)}`;
  const trigger = async () => {
    const words = (answer: { triggered: boolean }) =>
      answer.triggered ? `${item.name} runs now` : `${item.name} runs already, and may not overlap`;
    await act(() => change<{ triggered: boolean }>("POST", `${address}/trigger`), words);
    reload();
  };
  const turn = async () => {
    const verb = isOff(item) ? "enable" : "disable";
    const text = `${item.name} runs no more, on no node, until it is enabled again. A tick that runs now finishes.`;
    const question = { title: "Disable the recurring task", text: [text], press: "Disable it" };
    if (verb === "disable" && !(await confirmed(question))) return;
    await act(() => change("POST", `${address}/${verb}`), `${item.name} is ${verb}d`);
    reload();
  };
  const tone = isShort ? "quiet" : "plain";
  const [word, icon] = isOff(item) ? (["Enable", "play"] as const) : (["Disable", "pause"] as const);
  return (
    <span class="acts-row">
      <Button icon="trigger" tone={isShort ? "quiet" : "primary"} label={`Trigger ${item.name}`} onPress={trigger}>
        {isShort ? undefined : "Trigger"}
      </Button>
      <Button icon={icon} tone={tone} label={`${word} ${item.name}`} onPress={turn}>
        {isShort ? undefined : word}
      </Button>
    </span>
  );
}

function isOff(item: Recurring): boolean {
  return !item.enabled || item.breaker === "open";
}
