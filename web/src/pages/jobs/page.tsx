// All jobs: filters in the address, a list without an end, and actions on those chosen or on all that match.
import { useMemo } from "preact/hooks";
import { useKept } from "../../live/entries";
import { serverNow } from "../../live/feed";
import { href, replace } from "../../live/route";
import { Button } from "../../parts/button";
import { Page } from "../../parts/card";
import { Empty, Failure, Loading } from "../../parts/quiet";
import { exact } from "../../text/numbers";
import { BulkBar } from "./bulk_bar";
import { addressOf, filterOf, isEmpty, type JobFilter, queryOf } from "./filter";
import { Filters } from "./filters";
import { type JobList, useJobList } from "./list";
import { type Choice, JobTable } from "./table";

export function JobsPage({ query }: { query: Record<string, string[]> }) {
  const filter = filterOf(query);
  const name = JSON.stringify(filter);
  const asked = useMemo(() => queryOf(filter, serverNow()), [name]);
  const [chosen, setChosen] = useKept<ReadonlySet<string>>("chosen", new Set());
  const list = useJobList(asked, chosen.size > 0);
  const change = (part: Partial<JobFilter>) => {
    setChosen(new Set());
    replace(href("jobs", [], addressOf({ ...filter, ...part })));
  };
  const choice = choiceOf(list, chosen, setChosen);
  const finish = () => {
    setChosen(new Set());
    list.reload();
  };
  return (
    <Page title="Jobs" actions={<Tally list={list} />}>
      <Filters filter={filter} onChange={change} />
      <BulkBar filter={filter} chosen={chosen} onClear={() => setChosen(new Set())} onDone={finish} />
      {list.error === null ? null : <Failure error={list.error} onRetry={list.reload} />}
      <section class="card flush" aria-label="Jobs">
        {list.rows.length ? (
          <JobTable rows={list.rows} caption="Jobs, newest first" choice={choice} onEnd={list.more} />
        ) : list.isLoading || !(list.isWhole || list.isPaused) ? (
          <Loading lines={8} />
        ) : (
          <Nothing isFiltered={!isEmpty(filter)} />
        )}
      </section>
      {list.isPaused ? <GoOn list={list} /> : null}
    </Page>
  );
}

function choiceOf(list: JobList, chosen: ReadonlySet<string>, set: (ids: ReadonlySet<string>) => void): Choice {
  return {
    ids: chosen,
    toggle: (id) => {
      const next = new Set(chosen);
      if (!next.delete(id)) next.add(id);
      set(next);
    },
    toggleAll: () => set(chosen.size ? new Set() : new Set(list.rows.slice(0, 1000).map((row) => row.id))),
  };
}

function GoOn({ list }: { list: JobList }) {
  return (
    <p class="note">
      <span>
        {exact(list.rows.length)} found among the latest {exact(list.scanned)} jobs.
      </span>
      <Button icon="search" onPress={list.goOn}>
        Look further back
      </Button>
    </p>
  );
}

function Tally({ list }: { list: JobList }) {
  return (
    <span class="hint" role="status" aria-live="polite">
      {exact(list.rows.length)} {list.isWhole ? "found" : "loaded, more as you scroll"}
    </span>
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  if (!isFiltered) {
    return (
      <Empty icon="jobs" title="No job yet">
        Enqueue one: <code>millpond enqueue TASK</code>, or <code>task.enqueue(…)</code> in your program.
      </Empty>
    );
  }
  return (
    <Empty icon="search" title="No job matches">
      <a href={href("jobs")}>Clear the filters</a>
    </Empty>
  );
}
