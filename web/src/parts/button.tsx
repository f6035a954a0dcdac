// Buttons. A button that does something on the server is busy until it is done, and cannot be pressed twice.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Icon, type IconName } from "./icon";

interface Props {
  icon?: IconName;
  tone?: "plain" | "primary" | "danger" | "quiet";
  label?: string;
  disabled?: boolean;
  onPress: () => unknown;
  children?: ComponentChildren;
}

export function Button({ icon, tone = "plain", label, disabled = false, onPress, children }: Props) {
  const [isBusy, setBusy] = useState(false);
  const press = async () => {
    if (isBusy) return;
    setBusy(true);
    try {
      await onPress();
    } finally {
      setBusy(false);
    }
  };
  const voice = label === undefined ? {} : { "aria-label": label, title: label };
  return (
    <button type="button" class={`button ${tone}`} disabled={disabled} aria-busy={isBusy} onClick={press} {...voice}>
      {icon === undefined ? null : <Icon name={icon} />}
      {children === undefined ? null : <span>{children}</span>}
    </button>
  );
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [came, setCame] = useState<"copied" | "refused" | null>(null);
  const copy = async () => {
    setCame((await copied(text)) ? "copied" : "refused");
    window.setTimeout(() => setCame(null), 2500);
  };
  const voice = came === "copied" ? "Copied" : came === "refused" ? "Not copied: the browser refused it" : label;
  return (
    <button type="button" class="button quiet copy" aria-label={voice} title={voice} onClick={copy}>
      <Icon name={came === "copied" ? "check" : came === "refused" ? "warning" : "copy"} />
    </button>
  );
}

/** Puts it into the clipboard; false if it is not there. Over plain HTTP a browser has only the old way. */
async function copied(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined) {
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  }
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  const owner = document.activeElement;
  (document.querySelector("dialog[open]") ?? document.body).append(field); // beside a modal box nothing can be selected
  field.select();
  const isDone = document.execCommand("copy");
  field.remove();
  if (owner instanceof HTMLElement) owner.focus();
  return isDone;
}
