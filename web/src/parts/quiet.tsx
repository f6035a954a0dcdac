// What stands where nothing is to be shown: still loading, nothing there, or it went wrong.
import type { ComponentChildren } from "preact";
import type { Resource } from "../live/resource";
import { visible } from "../text/hostile";
import { isGone, Refused, sentence } from "../wire/http";
import { Button } from "./button";
import { Icon, type IconName } from "./icon";

interface EmptyProps {
  icon: IconName;
  title: string;
  children?: ComponentChildren;
}

export function Empty({ icon, title, children }: EmptyProps) {
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={icon} />
      </span>
      <p class="empty-title">{title}</p>
      {children === undefined ? null : <div class="empty-text">{children}</div>}
    </div>
  );
}

export function Loading({ lines = 4 }: { lines?: number }) {
  return (
    <div class="loading" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => (
        <span key={line} class="bone" />
      ))}
    </div>
  );
}

export function Failure({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const title = error instanceof Refused ? error.problem.title : "Something went wrong";
  const text = sentence(error);
  return (
    <div class="failure" role="alert">
      <Icon name="warning" />
      <div>
        <p class="failure-title">{visible(title)}</p>
        {text === title ? null : <p class="failure-text">{visible(text)}</p>}
      </div>
      {onRetry === undefined || isGone(error) ? null : (
        <Button icon="retry" onPress={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

interface LoadedProps<T> {
  resource: Resource<T>;
  lines?: number;
  children: (data: T) => ComponentChildren;
}

/** The content once it is there; a failed re-read keeps the old content below a note. */
export function Loaded<T>({ resource, lines, children }: LoadedProps<T>) {
  const { data, error, reload } = resource;
  if (data === null && error === null) return <Loading {...(lines === undefined ? {} : { lines })} />;
  return (
    <>
      {error === null ? null : <Failure error={error} onRetry={reload} />}
      {data === null ? null : children(data)}
    </>
  );
}
