// What came of an action, said once and politely.
import { useCell } from "../live/cell";
import { dismiss, toasts } from "../live/actions";
import { Data } from "../parts/data";
import { Icon } from "../parts/icon";

export function Toasts() {
  const shown = useCell(toasts);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map((toast) => (
        <div key={toast.key} class={toast.isError ? "toast error" : "toast"}>
          <Icon name={toast.isError ? "warning" : "check"} />
          <Data text={toast.text} most={600} />
          <button type="button" class="button quiet" aria-label="Dismiss" onClick={() => dismiss(toast.key)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
