// One job: why it is where it is, its attempts on a line of time, what went in, what came out, what went wrong.
import { act } from "../../live/actions";
import { confirmed } from "../../live/confirm";
import { useResource } from "../../live/resource";
import { go, href } from "../../live/route";
import { StateBadge } from "../../parts/badge";
import { Button, CopyButton } from "../../parts/button";
import { Card, Page } from "../../parts/card";
import { Block, Data, Name } from "../../parts/data";
import { Icon } from "../../parts/icon";
import { Loaded } from "../../parts/quiet";
import { percent } from "../../text/numbers";
import { change, segment } from "../../wire/http";
import type { JobDetail } from "../../wire/types";
import { Attempts } from "./attempts";
import { JobFacts } from "./facts";
import { pretty } from "./pretty";
import { Timeline } from "./timeline";

export function JobPage({ id }: { id: string }) {
  const resource = useResource<JobDetail>(`jobs/${segment(id)}`, {}, 2);
  const job = resource.data;
  const title = job === null ? "Job" : <Name text={job.task} />;
  const actions = job === null ? undefined : <Actions job={job} reload={resource.reload} />;
  return (
    <Page title={title} above={<a href={href("jobs")}>Jobs</a>} actions={actions}>
      <Loaded resource={resource} lines={10}>
        {(data) => <JobView job={data} />}
      </Loaded>
    </Page>
  );
}

function JobView({ job }: { job: JobDetail }) {
  const last = job.attempts[job.attempts.length - 1];
  return (
    <>
      <div class={`job-line state-${job.state}`}>
        <StateBadge state={job.state} reason={job.cancelling ? "cancelling" : job.reason} />
        <p class="why">{job.why === null ? null : <Data text={job.why} most={1000} />}</p>
      </div>
      <p class="job-id">
        <code>
          <Data text={job.id} />
        </code>
        <CopyButton text={job.id} label="Copy the id" />
      </p>
      {job.progress === null || job.state !== "running" ? null : <ProgressLine job={job} />}
      <Timeline job={job} />
      {last?.traceback && job.state !== "completed" ? (
        <Card
          title={
            <span class="tone-error">
              <Data text={last.error ?? "Error"} most={200} />
            </span>
          }
        >
          <p class="error-message">
            <Data text={last.message} most={2000} />
          </p>
          <Block text={last.traceback} label="traceback" />
        </Card>
      ) : null}
      <div class="two">
        <Card title="Arguments">
          <Block text={pretty(job.payload)} label="arguments" />
        </Card>
        <Card title="Result">
          {job.state === "completed" ? (
            <Block text={pretty(job.result)} label="result" />
          ) : (
            <p class="hint">There is one when the job has completed.</p>
          )}
        </Card>
      </div>
      <Attempts job={job} />
      <JobFacts job={job} />
    </>
  );
}

function ProgressLine({ job }: { job: JobDetail }) {
  const { share, note } = job.progress!;
  return (
    <p class="progress-line">
      {share == null ? null : (
        <>
          <progress class="wide" value={share} max={1} aria-label="Progress" />
          <b>{percent(share)}</b>
        </>
      )}
      <Data text={note} most={500} />
    </p>
  );
}

function Actions({ job, reload }: { job: JobDetail; reload: () => void }) {
  const send = async (verb: string, done: string) => {
    const answer = await act(() => change("POST", `jobs/${segment(job.id)}/${verb}`), done);
    if (answer !== null) reload();
    return answer;
  };
  const cancel = async () => {
    const text =
      job.state === "running"
        ? "It runs now. It is asked to stop; what it has done so far stays done."
        : "It will not run.";
    if (await confirmed({ title: "Cancel the job", text: [text], press: "Cancel the job" })) {
      await send("cancel", "The job is asked to end");
    }
  };
  const discard = async () => {
    const text = "It is deleted, with its history. This cannot be undone.";
    if (!(await confirmed({ title: "Discard the job", text: [text], press: "Discard the job" }))) return;
    if ((await send("discard", "The job is deleted")) !== null) go(href("jobs"));
  };
  return (
    <>
      {job.can.retry ? (
        <Button icon="retry" tone="primary" onPress={() => send("retry", "The job goes back into its queue")}>
          Replay
        </Button>
      ) : null}
      {job.can.cancel ? (
        <Button icon="cancel" onPress={cancel}>
          Cancel
        </Button>
      ) : null}
      {job.can.discard ? (
        <Button icon="trash" onPress={discard}>
          Discard
        </Button>
      ) : null}
      {job.can.retry || job.can.cancel || job.can.discard ? null : (
        <span class="hint">
          <Icon name="info" /> nothing to do
        </span>
      )}
    </>
  );
}
