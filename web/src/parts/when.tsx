// An instant: how long ago for the eye, exactly for the pointer and for machines.
import { useNow } from "../live/clock";
import { ago, moment } from "../text/times";

export function Ago({ at }: { at: string | null | undefined }) {
  const now = useNow();
  if (!at) return <span class="faint">–</span>;
  return (
    <time dateTime={at} title={at}>
      {ago(at, now)}
    </time>
  );
}

export function Moment({ at }: { at: string | null | undefined }) {
  const now = useNow();
  if (!at) return <span class="faint">–</span>;
  return (
    <time dateTime={at} title={at}>
      {moment(at, now)}
    </time>
  );
}
