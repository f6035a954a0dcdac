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
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(text).catch(() => undefined);
    setDone(true);
    window.setTimeout(() => setDone(false), 1500);
  };
  return (
    <button type="button" class="button quiet copy" aria-label={isDone ? "Copied" : label} title={label} onClick={copy}>
      <Icon name={isDone ? "check" : "copy"} />
    </button>
  );
}
