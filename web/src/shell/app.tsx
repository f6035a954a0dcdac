// The whole: session first, then the stream, then the page that the address names.
import { useEffect, useRef, useState } from "preact/hooks";
import { useCell } from "../live/cell";
import { placeScroll } from "../live/entries";
import { route } from "../live/route";
import { loadSession, mayRead, session } from "../live/session";
import { startStream, stopStream } from "../live/stream";
import { PageOf } from "../pages/page_of";
import { Failure, Loading } from "../parts/quiet";
import { ConfirmDialog } from "./confirm";
import { Help } from "./help";
import { LinkBanner } from "./link";
import { LoginPage, TokenDialog } from "./login";
import { Nav, TopBar } from "./nav";
import { Toasts } from "./toasts";

export function App() {
  const [trouble, setTrouble] = useState<unknown>(null);
  const known = useCell(session);
  const load = () => {
    setTrouble(null);
    loadSession().catch(setTrouble);
  };
  useEffect(load, []);
  if (known === null) {
    return <main class="first">{trouble === null ? <Loading /> : <Failure error={trouble} onRetry={load} />}</main>;
  }
  return mayRead(known) ? <Frame key="frame" scope={known.scope} /> : <LoginPage onGiven={() => undefined} />;
}

function Frame({ scope }: { scope: string }) {
  useEffect(() => {
    startStream(); // a new session needs a new stream: it was opened under the old one
    return stopStream;
  }, [scope]);
  return (
    <div class="frame">
      <a class="skip" href="#content" onClick={focusContent}>
        Skip to the content
      </a>
      <TopBar />
      <Nav />
      <main id="content">
        <LinkBanner />
        <CurrentPage />
      </main>
      <Toasts />
      <TokenDialog />
      <ConfirmDialog />
      <Help />
    </div>
  );
}

/** The hash belongs to the pages, so the skip link moves the focus itself. */
function focusContent(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("main h1")?.focus();
}

function CurrentPage() {
  const current = useCell(route);
  const place = [current.page, ...current.rest].join("/");
  const shown = useRef(place);
  useEffect(() => {
    document.title = `${titleOf(current.page)} · Millpond`;
    if (shown.current === place) return;
    shown.current = place;
    placeScroll();
    document.querySelector<HTMLElement>("main h1")?.focus({ preventScroll: true }); // a new page is read from its title
  }, [place]);
  return <PageOf key={place} route={current} />;
}

function titleOf(page: string): string {
  return page.charAt(0).toUpperCase() + page.slice(1);
}
