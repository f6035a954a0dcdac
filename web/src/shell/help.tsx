// The keys, for those who ask with a question mark.
import { useCell } from "../live/cell";
import { Dialog } from "../parts/dialog";
import { helpIsOpen } from "./keys";
import { PLACES } from "./places";

const OTHERS: readonly (readonly [readonly string[], string])[] = [
  [["/"], "Search"],
  [["j", "k"], "Next and previous row (arrow keys too)"],
  [["Enter"], "Open the row"],
  [["x"], "Choose the row"],
  [["t"], "Light or dark"],
  [["Esc"], "Close a dialog"],
  [["?"], "This help"],
];

export function Help() {
  if (!useCell(helpIsOpen)) return null;
  return (
    <Dialog title="Keys" onClose={() => helpIsOpen.set(false)}>
      <dl class="keys">
        {PLACES.map((place) => (
          <div key={place.page}>
            <dt>
              <kbd>g</kbd> <kbd>{place.key}</kbd>
            </dt>
            <dd>{[place.word, place.more].filter(Boolean).join(" ")}</dd>
          </div>
        ))}
        {OTHERS.map(([keys, what]) => (
          <div key={what}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
