// The filters over a list of jobs.
import { useEffect, useState } from "preact/hooks";
import { useCell } from "../../live/cell";
import { feed } from "../../live/feed";
import { useResource } from "../../live/resource";
import { StateBadge } from "../../parts/badge";
import { Icon } from "../../parts/icon";
import { oneLine, visible } from "../../text/hostile";
import type { JobState, TaskFacts } from "../../wire/types";
import { type JobFilter, SINCE, STATES } from "./filter";

interface Props {
  filter: JobFilter;
  onChange: (part: Partial<JobFilter>) => void;
}

export function Filters({ filter, onChange }: Props) {
  const queues = useCell(feed, (value) => value.overview?.queues ?? []).map((item) => item.queue);
  const tasks = useResource<{ tasks: TaskFacts[] }>("tasks", {}, 60).data?.tasks.map((item) => item.task) ?? [];
  return (
    <div class="filters" role="group" aria-label="Filters">
      <SearchField value={filter.text} onChange={(text) => onChange({ text })} />
      <Pick
        label="Queue"
        all="All queues"
        value={filter.queue}
        options={queues}
        onChange={(queue) => onChange({ queue })}
      />
      <Pick label="Task" all="All tasks" value={filter.task} options={tasks} onChange={(task) => onChange({ task })} />
      <label class="pick">
        <span class="unseen">Created</span>
        <select value={filter.since} onChange={(event) => onChange({ since: event.currentTarget.value })}>
          {SINCE.map(([value, word]) => (
            <option key={value} value={value}>
              {word}
            </option>
          ))}
        </select>
      </label>
      <StateChips chosen={filter.state} onChange={(state) => onChange({ state })} />
    </div>
  );
}

function StateChips({ chosen, onChange }: { chosen: readonly JobState[]; onChange: (state: JobState[]) => void }) {
  const toggle = (state: JobState) =>
    onChange(chosen.includes(state) ? chosen.filter((one) => one !== state) : [...chosen, state]);
  return (
    <div class="chips" role="group" aria-label="States">
      {STATES.map((state) => (
        <button
          key={state}
          type="button"
          class="chip"
          aria-pressed={chosen.includes(state)}
          onClick={() => toggle(state)}
        >
          <StateBadge state={state} />
        </button>
      ))}
    </div>
  );
}

interface PickProps {
  label: string;
  all: string;
  value: string;
  options: readonly string[];
  onChange: (value: string) => void;
}

export function Pick({ label, all, value, options, onChange }: PickProps) {
  const known = value && !options.includes(value) ? [value, ...options] : options;
  return (
    <label class="pick">
      <span class="unseen">{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">{all}</option>
        {known.map((option) => (
          <option key={option} value={option}>
            {visible(oneLine(option, 60))}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Searches a moment after the last key, not at each. */
function SearchField({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = window.setTimeout(() => onChange(text), 350);
    return () => window.clearTimeout(timer);
  }, [text]);
  return (
    <span class="search filter-search">
      <Icon name="search" />
      <input
        type="search"
        aria-label="Search in id, task, error, message and arguments"
        placeholder="Id, task, error, argument"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </span>
  );
}
