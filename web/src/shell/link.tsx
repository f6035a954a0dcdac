// The state of the connection: a small sign while it is well, a banner across the page when it is not, which
// says of when the shown facts are.
import { useCell } from "../live/cell";
import { useNow } from "../live/clock";
import { feed } from "../live/feed";
import { tryNow } from "../live/stream";
import { Button } from "../parts/button";
import { Icon } from "../parts/icon";
import { span } from "../text/numbers";
import { clock } from "../text/times";

export function LinkSign() {
  const link = useCell(feed, (value) => value.link);
  const second = useCell(feed, (value) => Math.floor((value.heardAt ?? 0) / 1000));
  const words = { live: "Live", connecting: "Connecting", polled: "Every 3 s", lost: "Disconnected" }[link];
  return (
    <span class={`link-sign link-${link}`}>
      <i aria-hidden="true" />
      <span>{words}</span>
      {second ? <span class="link-time">{clock(second * 1000)}</span> : null}
    </span>
  );
}

export function LinkBanner() {
  const link = useCell(feed, (value) => value.link);
  return (
    <div role="status" aria-live="polite">
      {link === "lost" ? <Lost /> : null}
    </div>
  );
}

function Lost() {
  const heardAt = useCell(feed, (value) => value.heardAt);
  useNow(); // the age below grows
  return (
    <div class="banner">
      <Icon name="warning" />
      <span>
        <b>Disconnected.</b>{" "}
        {heardAt === null
          ? "The server has not answered yet."
          : `Everything here is as of ${clock(heardAt)}, ${span(Math.round((Date.now() - heardAt) / 1000))} ago.`}{" "}
        Trying again.
      </span>
      <Button onPress={tryNow}>Try now</Button>
    </div>
  );
}
