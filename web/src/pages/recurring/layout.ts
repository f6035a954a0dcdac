// Where the boxes of the graph stand: a task to the right of everything it depends on, rows kept close to what
// they depend on. Pure; a circle (the server refuses one) would only stop pushing to the right.
import type { Recurring } from "../../wire/types";

export const BOX = { width: 212, height: 54, gapX: 72, gapY: 34, margin: 12 };

export interface Box {
  name: string;
  item: Recurring;
  x: number;
  y: number;
}

export interface Edge {
  from: Box;
  to: Box;
  kind: "depends" | "blocks";
  mode: string;
}

export interface Graph {
  boxes: Box[];
  edges: Edge[];
  width: number;
  height: number;
}

/** How many steps a task stands behind the first of its line. */
function depths(items: readonly Recurring[]): Map<string, number> {
  const known = new Map(items.map((item) => [item.name, 0]));
  for (let turn = 0; turn < items.length; turn += 1) {
    let isMoved = false;
    for (const item of items) {
      const behind = Math.max(-1, ...item.depends_on.map((one) => known.get(one.name) ?? -1)) + 1;
      if (behind > (known.get(item.name) ?? 0) && behind < items.length) {
        known.set(item.name, behind);
        isMoved = true;
      }
    }
    if (!isMoved) break;
  }
  return known;
}

/** Those that have to do with another; the rest would only make the picture large. */
function joined(items: readonly Recurring[]): Recurring[] {
  const named = new Set(items.flatMap((item) => [...item.depends_on.map((one) => one.name), ...item.blocks]));
  return items.filter((item) => named.has(item.name) || item.depends_on.length || item.blocks.length);
}

export function layout(all_items: readonly Recurring[]): Graph {
  const items = joined(all_items);
  const depth = depths(items);
  const boxes = new Map<string, Box>();
  const columns: Recurring[][] = [];
  for (const item of items) (columns[depth.get(item.name) ?? 0] ??= []).push(item);
  columns.forEach((column, place) => {
    const ordered = [...column].sort(
      (one, other) => height(one, boxes) - height(other, boxes) || (one.name < other.name ? -1 : 1),
    );
    ordered.forEach((item, row) => {
      boxes.set(item.name, {
        name: item.name,
        item,
        x: BOX.margin + place * (BOX.width + BOX.gapX),
        y: BOX.margin + row * (BOX.height + BOX.gapY),
      });
    });
  });
  const all = [...boxes.values()];
  return {
    boxes: all,
    edges: edgesOf(items, boxes),
    width: Math.max(0, ...all.map((box) => box.x + BOX.width)) + BOX.margin,
    height: Math.max(0, ...all.map((box) => box.y + BOX.height)) + BOX.margin + 16,
  };
}

/** The middle of what it depends on: a column is sorted by it. */
function height(item: Recurring, boxes: ReadonlyMap<string, Box>): number {
  const above = item.depends_on.flatMap((one) => boxes.get(one.name)?.y ?? []);
  return above.length ? above.reduce((sum, y) => sum + y, 0) / above.length : 0;
}

function edgesOf(items: readonly Recurring[], boxes: ReadonlyMap<string, Box>): Edge[] {
  const edges: Edge[] = [];
  const drawn = new Set<string>();
  const add = (kind: Edge["kind"], from: string, to: string, mode: string) => {
    const [start, end] = [boxes.get(from), boxes.get(to)];
    const pair = kind === "blocks" ? [from, to].sort().join("\n") : `${from}\n${to}\n`;
    if (start === undefined || end === undefined || drawn.has(pair)) return;
    drawn.add(pair);
    edges.push({ from: start, to: end, kind, mode });
  };
  for (const item of items) {
    for (const one of item.depends_on) add("depends", one.name, item.name, one.mode);
    for (const other of item.blocks) add("blocks", item.name, other, "");
  }
  return edges;
}

/** From under one box to under another, clear of the arrows and of the boxes between them. */
function below(left: Box, right: Box): string {
  const [x1, y1] = [left.x + BOX.width * 0.7, left.y + BOX.height];
  const [x2, y2] = [right.x + BOX.width * 0.3, right.y + BOX.height];
  const deep = Math.max(y1, y2) + 34;
  return `M${x1} ${y1}C${x1} ${deep} ${x2} ${deep} ${x2} ${y2}`;
}

/** A curve from the right side of one box to the left of another, or beside them in the same column. */
export function curve(edge: Edge): string {
  const { from, to } = edge;
  const middle = BOX.height / 2;
  if (from.x === to.x) {
    const x = from.x + BOX.width;
    const bulge = x + BOX.gapX * 0.55;
    return `M${x} ${from.y + middle}C${bulge} ${from.y + middle} ${bulge} ${to.y + middle} ${x} ${to.y + middle}`;
  }
  const [left, right] = from.x < to.x ? [from, to] : [to, from];
  if (edge.kind === "blocks") return below(left, right);
  const [x1, y1] = [left.x + BOX.width, left.y + middle];
  const [x2, y2] = [right.x, right.y + middle];
  const half = (x2 - x1) / 2;
  return `M${x1} ${y1}C${x1 + half} ${y1} ${x2 - half} ${y2} ${x2} ${y2}`;
}
