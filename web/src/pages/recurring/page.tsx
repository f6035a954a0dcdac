// Recurring tasks: how they hang together, when each comes next, and how each one is.
import { useResource } from "../../live/resource";
import { Card, Page } from "../../parts/card";
import { Empty, Loaded } from "../../parts/quiet";
import { many } from "../../text/numbers";
import type { Recurring } from "../../wire/types";
import { Chosen } from "./chosen";
import { RecurringGraph } from "./graph";
import { RecurringTable } from "./table";

interface Answer {
  recurring: Recurring[];
  enabled: boolean;
}

export function RecurringPage({ chosen }: { chosen: string | null }) {
  const resource = useResource<Answer>("recurring", {}, 2);
  return (
    <Page title="Recurring tasks">
      <Loaded resource={resource} lines={8}>
        {(data) => <Content data={data} chosen={chosen} reload={resource.reload} />}
      </Loaded>
    </Page>
  );
}

function Content({ data, chosen, reload }: { data: Answer; chosen: string | null; reload: () => void }) {
  const item = data.recurring.find((one) => one.name === chosen);
  if (!data.recurring.length) {
    return (
      <Empty icon="recurring" title={data.enabled ? "No recurring task" : "The server does not know the app"}>
        {data.enabled ? (
          <>
            Decorate a function with <code>@app.recurring(every="60s")</code>
          </>
        ) : (
          <>
            Name it when you start the dashboard: <code>millpond dashboard --app jobs:app</code>
          </>
        )}
      </Empty>
    );
  }
  return (
    <>
      <Card title="How they hang together" flush>
        <RecurringGraph items={data.recurring} chosen={chosen} />
      </Card>
      {item === undefined ? null : <Chosen item={item} reload={reload} />}
      <Card title="All" aside={<span class="hint">{many(data.recurring.length, "task")}</span>} flush>
        <RecurringTable items={data.recurring} chosen={chosen} reload={reload} />
      </Card>
    </>
  );
}
