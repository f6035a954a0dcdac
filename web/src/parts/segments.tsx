// A choice of a few, all in sight: radio buttons dressed as one strip. Arrow keys come with the browser.
import { useId } from "preact/hooks";

interface Props<T extends string> {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
}

export function Segments<T extends string>({ label, value, options, onChange }: Props<T>) {
  const name = useId();
  return (
    <fieldset class="segments">
      <legend class="unseen">{label}</legend>
      {options.map(([option, word]) => (
        <label key={option} class={option === value ? "chosen" : ""}>
          <input type="radio" name={name} checked={option === value} onChange={() => onChange(option)} />
          {word}
        </label>
      ))}
    </fieldset>
  );
}
