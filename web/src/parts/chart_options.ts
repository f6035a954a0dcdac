// How a chart is drawn: colours from the stylesheet, quiet axes, a pointer shared by charts of one group.
import uPlot from "uplot";

export interface Line {
  label: string;
  tone: "accent" | "ok" | "warn" | "error" | "violet" | "muted";
  values: readonly (number | null)[];
  fill?: boolean;
  dash?: boolean;
  isStep?: boolean;
}

interface Wish {
  box: HTMLElement;
  lines: readonly Line[];
  format: (value: number | null) => string;
  height: number;
  group: string;
  limit: number | null;
  onPlace: (place: number | null) => void;
}

export function chartOptions(wish: Wish): uPlot.Options {
  const style = getComputedStyle(wish.box);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const font = `11px ${style.fontFamily}`;
  const axis = { stroke: colour("text-3"), font, ticks: { show: false } };
  const grid = { stroke: colour("line"), width: 1 };
  return {
    width: wish.box.clientWidth || 300,
    height: wish.height,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { size: 7 },
      drag: { x: false, y: false },
      ...(wish.group ? { sync: { key: wish.group } } : {}),
    },
    scales: { y: { range: (_plot, _least, most) => [0, roof(most, wish.limit)] } },
    axes: [
      { ...axis, grid: { show: false }, space: 64, size: 24, values: clockLabels },
      {
        ...axis,
        grid,
        size: (_plot, values) => Math.max(46, 14 + 6.5 * Math.max(0, ...(values ?? []).map((text) => text.length))),
        space: 34,
        values: (_plot, splits) => splits.map((value) => wish.format(value)),
      },
    ],
    series: [{}, ...wish.lines.map((line) => series(line, colour))],
    hooks: {
      setCursor: [(plot) => wish.onPlace(plot.cursor.idx ?? null)],
      draw: wish.limit === null ? [] : [(plot) => drawLimit(plot, wish.limit!, colour("warn"))],
    },
  };
}

/** The top of the axis: what is drawn, with room above; the limit only if it is not far away. */
export function roof(most: number | null, limit: number | null): number {
  const high = Math.max(most ?? 0, 0);
  const wanted = limit !== null && limit <= Math.max(high * 4, 0) ? Math.max(high, limit) : high;
  return wanted > 0 ? wanted * 1.12 : 1;
}

function series(line: Line, colour: (name: string) => string): uPlot.Series {
  const stroke = colour(`line-${line.tone}`);
  return {
    label: line.label,
    stroke,
    width: line.dash ? 1.25 : 1.75,
    points: { show: isAlone, size: 5 },
    spanGaps: true,
    ...(line.dash ? { dash: [5, 4] } : {}),
    ...(line.fill ? { fill: `${stroke}24` } : {}),
    ...(line.isStep ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {}),
  };
}

/** A single value makes no line: it is drawn as a point. */
function isAlone(plot: uPlot, series: number): boolean {
  const values = plot.data[series] as readonly (number | null)[] | undefined;
  return (values ?? []).filter((value) => value !== null).length === 1;
}

function clockLabels(_plot: uPlot, splits: number[]): string[] {
  const step = (splits[1] ?? 0) - (splits[0] ?? 0);
  const options: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", hour12: false };
  if (step < 60) options.second = "2-digit";
  return splits.map((at) => new Date(at * 1000).toLocaleTimeString("en-GB", options));
}

function drawLimit(plot: uPlot, limit: number, stroke: string): void {
  const y = plot.valToPos(limit, "y", true);
  const { left, top, width, height } = plot.bbox;
  if (y < top || y > top + height) return;
  plot.ctx.save();
  plot.ctx.strokeStyle = stroke;
  plot.ctx.setLineDash([6, 5]);
  plot.ctx.lineWidth = devicePixelRatio;
  plot.ctx.beginPath();
  plot.ctx.moveTo(left, y);
  plot.ctx.lineTo(left + width, y);
  plot.ctx.stroke();
  plot.ctx.restore();
}
