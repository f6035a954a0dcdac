// A chart over time: uPlot on a canvas, a legend that follows the pointer, and the same in a sentence for those
// who cannot see it. Drawn anew only when its shape or the colours change; data is put in place.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { useCell } from "../live/cell";
import { shade } from "../live/theme";
import { chartOptions, type Line } from "./chart_options";

interface Props {
  title: string;
  times: readonly number[];
  lines: readonly Line[];
  format: (value: number | null) => string;
  height?: number;
  group?: string;
  limit?: number | null;
}

export function Chart({ title, times, lines, format, height = 180, group, limit = null }: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [place, setPlace] = useState<number | null>(null);
  const look = useCell(shade);
  const id = useId();
  const shape = [
    look,
    height,
    group,
    limit,
    ...lines.map((line) => `${line.label}/${line.tone}/${line.isStep}`),
  ].join();
  const data = [times, ...lines.map((line) => line.values)] as unknown as uPlot.AlignedData;

  useEffect(() => {
    const box = holder.current;
    if (box === null) return;
    const options = chartOptions({ box, lines, format, height, group: group ?? "", limit, onPlace: setPlace });
    const made = new uPlot(options, data, box);
    plot.current = made;
    const watcher = new ResizeObserver(() => made.setSize({ width: box.clientWidth, height }));
    watcher.observe(box);
    return () => {
      watcher.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape]);

  useEffect(() => plot.current?.setData(data), [times, ...lines.map((line) => line.values)]);

  return (
    <figure class="chart" aria-labelledby={id}>
      <figcaption>
        <span class="unseen" id={id}>
          {title}
        </span>
        <Legend lines={lines} format={format} place={place} time={place === null ? null : (times[place] ?? null)} />
      </figcaption>
      <div class="chart-box" ref={holder} aria-hidden="true" style={{ height: `${height}px` }} />
      <p class="unseen">{spoken(lines, format)}</p>
    </figure>
  );
}

interface LegendProps {
  lines: readonly Line[];
  format: (value: number | null) => string;
  place: number | null;
  time: number | null;
}

function Legend({ lines, format, place, time }: LegendProps) {
  return (
    <span class="legend">
      {time === null ? null : (
        <span class="legend-time">{new Date(time * 1000).toLocaleTimeString("en-GB", { hour12: false })}</span>
      )}
      {lines.map((line) => (
        <span key={line.label} class={`legend-item line-${line.tone}${line.dash ? " dashed" : ""}`}>
          <i aria-hidden="true" />
          {line.label} <b>{format(place === null ? lastOf(line.values) : (line.values[place] ?? null))}</b>
        </span>
      ))}
    </span>
  );
}

export function lastOf(values: readonly (number | null)[]): number | null {
  return values.findLast((value) => value !== null) ?? null;
}

/** What the curves show, in words. */
export function spoken(lines: readonly Line[], format: (value: number | null) => string): string {
  return lines
    .map((line) => {
      const known = line.values.filter((value): value is number => value !== null);
      if (!known.length) return `${line.label}: no data`;
      return `${line.label}: now ${format(lastOf(line.values))}, least ${format(Math.min(...known))}, most ${format(Math.max(...known))}`;
    })
    .join("; ");
}
