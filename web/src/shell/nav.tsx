// The frame around every page: where one can go, how the connection is, search, light and session.
import { useState } from "preact/hooks";
import { act } from "../live/actions";
import { useCell } from "../live/cell";
import { feed } from "../live/feed";
import { go, href, route } from "../live/route";
import { askForToken, logOut, session } from "../live/session";
import { nextTheme, shade } from "../live/theme";
import { Data } from "../parts/data";
import { Icon } from "../parts/icon";
import { count } from "../text/numbers";
import { helpIsOpen } from "./keys";
import { LinkSign } from "./link";
import { PLACES } from "./places";

const OWNERS: Record<string, string> = { queues: "overview", pools: "scaling" };

export function Nav() {
  const page = useCell(route, (value) => value.page);
  const current = OWNERS[page] ?? page;
  return (
    <nav class="nav" aria-label="Pages">
      <ul>
        {PLACES.map((place) => (
          <li key={place.page}>
            <a
              href={href(place.page)}
              aria-current={place.page === current ? "page" : undefined}
              title={`g ${place.key}`}
            >
              <Icon name={place.icon} />
              <span>
                {place.word}
                {place.more === undefined ? null : <span class="more"> {place.more}</span>}
              </span>
              <Tally page={place.page} />
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** The number beside a page: what wants attention there. */
function Tally({ page }: { page: string }) {
  const totals = useCell(feed, (value) => value.overview?.totals ?? null);
  const open = useCell(feed, (value) => value.overview?.recurring?.open ?? 0);
  if (totals === null) return null;
  const [value, tone] =
    page === "dead"
      ? [totals.dead, "error"]
      : page === "recurring"
        ? [open, "error"]
        : page === "nodes"
          ? [totals.workers, ""]
          : [0, ""];
  return value ? <span class={`tally ${tone}`}>{count(value)}</span> : null;
}

export function TopBar() {
  const app = useCell(feed, (value) => value.overview?.app ?? null);
  const store = useCell(feed, (value) => value.overview?.store ?? null);
  return (
    <header class="top">
      <a class="brand" href={href("overview")} aria-label="Millpond, overview">
        <span class="brand-mark" aria-hidden="true" />
        <span class="brand-word">Millpond</span>
      </a>
      <span class="top-app">
        {app === null ? null : <Data text={app} most={60} />}
        {store === null ? null : (
          <span class="faint">
            <Data text={store.url} most={80} />
          </span>
        )}
      </span>
      <Search />
      <LinkSign />
      <Tools />
    </header>
  );
}

const ID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;

function Search() {
  const [text, setText] = useState("");
  const find = (event: Event) => {
    event.preventDefault();
    const wanted = text.trim();
    if (wanted) go(ID.test(wanted) ? href("jobs", [wanted]) : href("jobs", [], { text: wanted }));
    setText("");
  };
  return (
    <form class="search" role="search" onSubmit={find}>
      <Icon name="search" />
      <input
        type="search"
        aria-label="Search jobs by id, task, error or argument"
        placeholder="Search jobs"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <kbd aria-hidden="true">/</kbd>
    </form>
  );
}

function Tools() {
  const look = useCell(shade);
  const who = useCell(session);
  const isAdmin = who?.scope === "admin";
  const turn = look === "dark" ? "Light colours" : "Dark colours";
  return (
    <span class="tools">
      <button
        type="button"
        class="button quiet only-wide"
        aria-label="Keys"
        title="Keys (?)"
        onClick={() => helpIsOpen.set(true)}
      >
        <Icon name="keyboard" />
      </button>
      <button type="button" class="button quiet" aria-label={turn} title={`${turn} (t)`} onClick={nextTheme}>
        <Icon name={look === "dark" ? "sun" : "moon"} />
      </button>
      <button
        type="button"
        class={isAdmin ? "button quiet signed-in" : "button quiet"}
        aria-label={isAdmin ? "Sign out" : "Sign in"}
        title={isAdmin ? `Signed in as ${who?.name ?? "admin"}: press to sign out` : "Sign in with the admin token"}
        onClick={() => void (isAdmin ? act(logOut, "Signed out") : askForToken())}
      >
        <Icon name={isAdmin ? "key" : "lock"} />
      </button>
    </span>
  );
}
