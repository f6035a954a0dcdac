// A table of any length of which only the visible rows exist. It scrolls with the page; every row has the same
// height. Arrow keys and j/k move along the rows, Enter opens one, x or the space bar chooses it.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useNarrow } from "./narrow";
import { visibleRows } from "./window";

export interface Column<T> {
  key: string;
  title: ComponentChildren;
  spoken?: string;
  cell: (row: T) => ComponentChildren;
}

interface Props<T> {
  caption: string;
  kind: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  keyOf: (row: T) => string;
  onOpen?: (row: T) => void;
  onChoose?: (row: T) => void;
  onEnd?: () => void;
  height?: { wide: number; narrow: number };
}

const HEIGHT = { wide: 44, narrow: 76 };

export function Rows<T>(props: Props<T>) {
  const { rows, columns, keyOf, caption, kind } = props;
  const isNarrow = useNarrow();
  const height = (props.height ?? HEIGHT)[isNarrow ? "narrow" : "wide"];
  const body = useRef<HTMLTableSectionElement>(null);
  const view = useVisible(body, rows.length, height);
  const roving = useRoving(body, rows, height, props);
  const isAtEnd = view.last >= rows.length;
  useEffect(() => {
    if (isAtEnd) props.onEnd?.();
  }, [isAtEnd, rows.length]);
  return (
    <table class={`rows rows-${kind}`} role="table" aria-rowcount={rows.length + 1}>
      <caption class="unseen">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map((column) => (
            <th key={column.key} role="columnheader" scope="col" class={`col-${column.key}`} aria-label={column.spoken}>
              {column.title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup" ref={body} onKeyDown={roving.onKey}>
        <Gap height={view.before} />
        {rows.slice(view.first, view.last).map((row, offset) => (
          <tr
            key={keyOf(row)}
            role="row"
            data-row={view.first + offset}
            aria-rowindex={view.first + offset + 2}
            class={props.onOpen ? "opens" : ""}
            style={{ height: `${height}px` }}
            {...roving.of(view.first + offset, row)}
          >
            {columns.map((column) => (
              <td key={column.key} role="cell" class={`col-${column.key}`}>
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
        <Gap height={view.after} />
      </tbody>
    </table>
  );
}

function Gap({ height }: { height: number }) {
  return height > 0 ? <tr class="gap" aria-hidden="true" style={{ height: `${height}px` }} /> : null;
}

type Body = { current: HTMLTableSectionElement | null };

function useVisible(body: Body, count: number, height: number) {
  const [top, setTop] = useState(0);
  useEffect(() => {
    let turn = 0;
    const look = () => {
      window.cancelAnimationFrame(turn);
      turn = window.requestAnimationFrame(() => {
        const place = body.current?.getBoundingClientRect().top ?? 0;
        setTop(Math.round(place / height) * height); // no redraw for every pixel
      });
    };
    look();
    window.addEventListener("scroll", look, { passive: true });
    window.addEventListener("resize", look);
    return () => {
      window.cancelAnimationFrame(turn);
      window.removeEventListener("scroll", look);
      window.removeEventListener("resize", look);
    };
  }, [height, count === 0]);
  return visibleRows(count, height, top, window.innerHeight);
}

/** One row is in the tab order; the keys move it. */
function useRoving<T>(body: Body, rows: readonly T[], height: number, props: Props<T>) {
  const [at, setAt] = useState(0);
  const current = Math.min(at, Math.max(rows.length - 1, 0));
  const move = (place: number) => {
    const next = Math.min(Math.max(place, 0), rows.length - 1);
    setAt(next);
    focusRow(body, next, height);
  };
  const steps: Record<string, number> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 10, PageUp: -10 };
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !isRow(event.target)) return;
    const row = rows[current];
    const step = steps[event.key];
    if (step !== undefined) move(current + step);
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(rows.length - 1);
    else if (event.key === "Enter" && row !== undefined) props.onOpen?.(row);
    else if ((event.key === "x" || event.key === " ") && row !== undefined) props.onChoose?.(row);
    else return;
    event.preventDefault();
  };
  const of = (place: number, row: T) => ({
    tabIndex: place === current ? 0 : -1,
    onFocus: () => setAt(place),
    onClick: (event: MouseEvent) => {
      if (!isControl(event.target)) props.onOpen?.(row);
    },
  });
  return { onKey, of };
}

function isRow(target: EventTarget | null): boolean {
  return target instanceof HTMLTableRowElement;
}

function isControl(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("a, button, input, label") !== null;
}

function focusRow(body: Body, place: number, height: number): void {
  const found = () => body.current?.querySelector<HTMLElement>(`[data-row="${place}"]`);
  const row = found();
  if (row) {
    row.focus();
    row.scrollIntoView({ block: "nearest" });
    return;
  }
  const top = (body.current?.getBoundingClientRect().top ?? 0) + window.scrollY + place * height;
  window.scrollTo({ top: top - window.innerHeight / 2 });
  window.setTimeout(() => found()?.focus(), 50); // once it has been drawn
}
