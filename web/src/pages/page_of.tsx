// Which page an address means.
import type { Route } from "../live/route";
import { href } from "../live/route";
import { Page } from "../parts/card";
import { Empty } from "../parts/quiet";
import { DeadPage } from "./dead/page";
import { JobPage } from "./job/page";
import { JobsPage } from "./jobs/page";
import { NodesPage } from "./nodes/page";
import { OverviewPage } from "./overview/page";
import { QueuePage } from "./queue/page";
import { RecurringPage } from "./recurring/page";
import { ScalingPage } from "./scaling/page";

export function PageOf({ route }: { route: Route }) {
  const [name] = route.rest;
  switch (route.page) {
    case "overview":
      return <OverviewPage />;
    case "queues":
      return name === undefined ? <OverviewPage /> : <QueuePage name={name} />;
    case "jobs":
      return name === undefined ? <JobsPage query={route.query} /> : <JobPage id={name} />;
    case "dead":
      return <DeadPage query={route.query} />;
    case "nodes":
      return <NodesPage />;
    case "recurring":
      return <RecurringPage chosen={name ?? null} />;
    case "scaling":
      return <ScalingPage pool={name ?? null} />;
    default:
      return (
        <Page title="No such page">
          <Empty icon="info" title="There is nothing at this address">
            <a href={href("overview")}>Go to the overview</a>
          </Empty>
        </Page>
      );
  }
}
