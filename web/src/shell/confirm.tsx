// Asks before something stops work; closing the box is no.
import { useCell } from "../live/cell";
import { asked } from "../live/confirm";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { visible } from "../text/hostile";

export function ConfirmDialog() {
  const question = useCell(asked);
  if (question === null) return null;
  return (
    <Dialog title={visible(question.title)} onClose={() => question.answer(false)}>
      {question.text.map((sentence) => (
        <p key={sentence}>{visible(sentence)}</p>
      ))}
      <div class="dialog-actions">
        <Button onPress={() => question.answer(false)}>Back</Button>
        <Button tone="danger" onPress={() => question.answer(true)}>
          {question.press}
        </Button>
      </div>
    </Dialog>
  );
}
