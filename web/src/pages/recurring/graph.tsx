// The graph: an arrow leads from a task to those that wait for it, a dashed line joins those that never run at
// the same time. The table below says the same in words.
import { href } from "../../live/route";
import { visible, cut } from "../../text/hostile";
import type { Recurring } from "../../wire/types";
import { BOX, type Box, curve, type Edge, layout } from "./layout";

export function RecurringGraph({ items, chosen }: { items: readonly Recurring[]; chosen: string | null }) {
  const graph = layout(items);
  if (!graph.edges.length) return <p class="hint inset">No task depends on or excludes another.</p>;
  return (
    <div class="graph" tabIndex={0} role="group" aria-label="Graph of dependencies and exclusions">
      <svg viewBox={`0 0 ${graph.width} ${graph.height}`} width={graph.width} height={graph.height}>
        <defs>
          <marker
            id="arrow"
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="7"
            markerHeight="7"
            orient="auto-start-reverse"
          >
            <path d="M0 .8 7 4 0 7.2Z" />
          </marker>
        </defs>
        {graph.edges.map((edge) => (
          <path
            key={`${edge.kind}/${edge.from.name}/${edge.to.name}`}
            class={`edge edge-${edge.kind}`}
            d={curve(edge)}
            {...(edge.kind === "depends" ? { "marker-end": "url(#arrow)" } : {})}
          >
            <title>{visible(words(edge))}</title>
          </path>
        ))}
        {graph.boxes.map((box) => (
          <GraphBox key={box.name} box={box} isChosen={box.name === chosen} />
        ))}
      </svg>
      <p class="legend graph-legend" aria-hidden="true">
        <span class="legend-item">
          <i class="key-depends" />
          runs after
        </span>
        <span class="legend-item">
          <i class="key-blocks" />
          never together
        </span>
      </p>
    </div>
  );
}

function words({ kind, from, to, mode }: Edge): string {
  return kind === "depends"
    ? `${to.name} needs ${from.name} (${mode})`
    : `${from.name} and ${to.name} never run together`;
}

function GraphBox({ box, isChosen }: { box: Box; isChosen: boolean }) {
  const { item } = box;
  const short = (text: string, most: number) => {
    const part = cut(visible(text), most);
    return part.left ? `${part.text}…` : part.text;
  };
  const state = !item.enabled || item.breaker === "open" ? "off" : item.running ? "running" : "on";
  return (
    <a href={href("recurring", [item.name])} class={`graph-box graph-${state}${isChosen ? " chosen" : ""}`}>
      <rect x={box.x} y={box.y} width={BOX.width} height={BOX.height} rx="8" />
      <circle cx={box.x + 16} cy={box.y + 19} r="4.5" />
      <text x={box.x + 28} y={box.y + 23} class="graph-name">
        {short(item.name.slice(item.name.lastIndexOf(".") + 1), 24)}
      </text>
      <text x={box.x + 28} y={box.y + 41} class="graph-note">
        {short(state === "off" ? offWord(item) : item.running ? "running" : (item.cadence ?? item.mode), 30)}
      </text>
    </a>
  );
}

function offWord(item: Recurring): string {
  return item.breaker === "open" ? "breaker open" : "disabled";
}
