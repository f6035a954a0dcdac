// Shows text that came with a job: isolated, so that it cannot turn what stands beside it; with what is
// invisible made visible; and cut where it is long, with the rest one press away.
import { useState } from "preact/hooks";
import { cut, oneLine, pieces, visible } from "../text/hostile";
import { size } from "../text/numbers";
import { CopyButton } from "./button";

const SHORT = 300;
const LONG = 20_000;

/** One line of somebody's text. */
export function Data({ text, most = SHORT }: { text: string | null | undefined; most?: number }) {
  if (text === null || text === undefined || text === "") return <span class="faint">–</span>;
  const shown = oneLine(text, most);
  const title = shown.length > 30 ? { title: visible(cut(text, 1000).text) } : {};
  return (
    <bdi class="data" {...title}>
      <Pieces text={shown} />
      {text.length > most ? "…" : null}
    </bdi>
  );
}

/** A dotted name: the last part is what people know it by, the rest gives way first. */
export function Name({ text, most = 160 }: { text: string; most?: number }) {
  const at = text.lastIndexOf(".");
  if (at < 1 || at === text.length - 1) return <Data text={text} most={most} />;
  return (
    <bdi class="data name" title={visible(cut(text, 1000).text)}>
      <span class="name-head">
        <Pieces text={oneLine(text.slice(0, at + 1), most)} />
      </span>
      <span class="name-tail">
        <Pieces text={oneLine(text.slice(at + 1), most)} />
      </span>
    </bdi>
  );
}

/** A block of somebody's text, lines kept: a traceback, a document. */
export function Block({ text, label }: { text: string; label: string }) {
  const [isWhole, setWhole] = useState(false);
  const part = isWhole ? { text, left: 0 } : cut(text, LONG);
  return (
    <div class="block">
      <CopyButton text={text} label={`Copy ${label}`} />
      <pre tabIndex={0} aria-label={label} dir="ltr">
        <Pieces text={part.text} />
      </pre>
      {part.left > 0 ? (
        <button type="button" class="link block-more" onClick={() => setWhole(true)}>
          Show all ({size(text.length)}; {size(part.left)} more)
        </button>
      ) : null}
    </div>
  );
}

function Pieces({ text }: { text: string }) {
  const found = pieces(text);
  if (found.length === 1 && !found[0]!.isMark) return <>{text}</>;
  return <>{found.map((piece) => (piece.isMark ? <span class="mark">{piece.text}</span> : piece.text))}</>;
}
