// Jobs in rows, for every list of them: windowed, opened by a press or Enter, chosen by a box.
import { go, href } from "../../live/route";
import { StateBadge } from "../../parts/badge";
import { Data, Name } from "../../parts/data";
import { type Column, Rows } from "../../parts/rows";
import { Ago } from "../../parts/when";
import { attemptsInWords, limitOf } from "../../text/attempts";
import { percent, span } from "../../text/numbers";
import type { JobRow } from "../../wire/types";

export interface Choice {
  ids: ReadonlySet<string>;
  toggle: (id: string) => void;
  toggleAll: () => void;
}

interface Props {
  rows: readonly JobRow[];
  caption: string;
  hideQueue?: boolean;
  choice?: Choice;
  onEnd?: () => void;
}

export function JobTable({ rows, caption, hideQueue = false, choice, onEnd }: Props) {
  const columns = COLUMNS.filter((column) => !(hideQueue && column.key === "queue"));
  return (
    <Rows
      kind="jobs"
      caption={caption}
      rows={rows}
      columns={choice === undefined ? columns : [chooser(rows, choice), ...columns]}
      keyOf={(row) => row.id}
      onOpen={(row) => go(href("jobs", [row.id]))}
      {...(choice === undefined ? {} : { onChoose: (row: JobRow) => choice.toggle(row.id) })}
      {...(onEnd === undefined ? {} : { onEnd })}
    />
  );
}

function chooser(rows: readonly JobRow[], choice: Choice): Column<JobRow> {
  const isAll = rows.length > 0 && choice.ids.size >= rows.length;
  return {
    key: "choose",
    spoken: "Chosen",
    title: <input type="checkbox" aria-label="Choose all shown" checked={isAll} onChange={choice.toggleAll} />,
    cell: (row) => (
      <label class="box">
        <input
          type="checkbox"
          aria-label={`Choose job ${row.id}`}
          checked={choice.ids.has(row.id)}
          onChange={() => choice.toggle(row.id)}
        />
      </label>
    ),
  };
}

const COLUMNS: readonly Column<JobRow>[] = [
  { key: "state", title: "State", cell: (row) => <State row={row} /> },
  {
    key: "task",
    title: "Task",
    cell: (row) => (
      <a class="strong" href={href("jobs", [row.id])} tabIndex={-1}>
        <Name text={row.task} />
      </a>
    ),
  },
  { key: "detail", title: "Arguments, error", cell: (row) => <Detail row={row} /> },
  { key: "queue", title: "Queue", cell: (row) => <Data text={row.queue} most={60} /> },
  { key: "attempt", title: "Attempt", cell: (row) => <AttemptOf row={row} /> },
  { key: "wait", title: "Wait", cell: (row) => span(row.wait) },
  { key: "run", title: "Run", cell: (row) => <Run row={row} /> },
  { key: "created", title: "Created", cell: (row) => <Ago at={row.created_at} /> },
];

function State({ row }: { row: JobRow }) {
  return row.cancelling ? <StateBadge state={row.state} reason="cancelling" /> : <StateBadge state={row.state} />;
}

function AttemptOf({ row }: { row: JobRow }) {
  if (row.attempt <= 1 && row.state !== "dead") return <span class="faint">{row.attempt || "–"}</span>;
  return (
    <span title={attemptsInWords(row)}>
      {row.attempt}
      <span class="faint">{limitOf(row)}</span>
    </span>
  );
}

function Detail({ row }: { row: JobRow }) {
  if (row.error !== null && row.state !== "completed") {
    return (
      <span class="tone-error mono">
        <Data text={row.message ? `${shortName(row.error)}: ${row.message}` : row.error} most={200} />
      </span>
    );
  }
  if (row.state === "running" && row.progress?.share != null) return <ProgressOf row={row} />;
  return (
    <span class="mono faint">
      <Data text={row.arguments} most={200} />
    </span>
  );
}

/** An error by its last name: in a list its module would take the place of what it says. */
function shortName(name: string): string {
  return name.slice(name.lastIndexOf(".") + 1);
}

function ProgressOf({ row }: { row: JobRow }) {
  const fraction = row.progress?.share ?? 0;
  return (
    <span class="progress-cell">
      <progress value={fraction} max={1} aria-label="Progress" />
      {percent(fraction)} <Data text={row.progress?.note} most={80} />
    </span>
  );
}

function Run({ row }: { row: JobRow }) {
  return <>{span(row.run)}</>;
}
