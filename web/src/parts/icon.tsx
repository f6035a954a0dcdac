// The icons, drawn on a grid of 16 with one stroke. An icon that stands alone needs a label; beside words it
// is decoration and hidden from screen readers.
const SHAPES = {
  overview: "M2.5 9.5 6 6l2.5 2.5 5-5M10.5 3.5h3v3M2.5 13.5h11",
  queue: "M2.5 4h11M2.5 8h11M2.5 12h7",
  jobs: "M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01",
  nodes: "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01M8 5h3M8 11h3",
  dead: "M5.2 2.5h5.6l2.7 2.7v5.6l-2.7 2.7H5.2l-2.7-2.7V5.2zM6 6l4 4M10 6l-4 4",
  recurring: "M13 8a5 5 0 1 1-1.6-3.7M13.2 2.3v3h-3",
  scaling: "M2.5 13.5v-3M6.2 13.5v-6M9.9 13.5v-4M13.5 13.5v-11",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.5 10.5l3 3",
  sun: "M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6zM8 1.5v1.4M8 13.1v1.4M1.5 8h1.4M13.1 8h1.4M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1",
  moon: "M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8z",
  key: "M10.3 8.7a3.2 3.2 0 1 0-3-3l-4.8 4.8v3h3v-1.8h1.8V9.9zM11 5h.01",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3.2 12 8l-7 4.8z",
  stop: "M4 4h8v8H4z",
  retry: "M3 8a5 5 0 1 0 1.6-3.7M2.8 2.3v3h3",
  trash: "M3 4.5h10M6.2 4.5V3h3.6v1.5M4.3 4.5l.6 8.7h6.2l.6-8.7M6.8 7v3.7M9.2 7v3.7",
  cancel: "M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM4.2 4.2l7.6 7.6",
  check: "M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM5.6 8.2l1.7 1.7 3.2-3.6",
  clock: "M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM8 5v3.2l2 1.3",
  circle: "M8 12.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9z",
  running: "M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM7 5.8 10.2 8 7 10.2z",
  link: "M6.5 9.5l3-3M7 4.8l1.3-1.3a2.9 2.9 0 0 1 4.2 4.2L11.2 9M9 11.2l-1.3 1.3a2.9 2.9 0 0 1-4.2-4.2L4.8 7",
  warning: "M8 2.5 14 13H2zM8 6.5v3M8 11.3h.01",
  info: "M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM8 7.5v3M8 5.3h.01",
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M5.5 5.5h7v7h-7zM3.5 10.5v-7h7",
  next: "M6 3.5 10.5 8 6 12.5",
  down: "M3.5 6 8 10.5 12.5 6",
  up: "M8 13V3M4 7l4-4 4 4",
  fall: "M8 3v10M4 9l4 4 4-4",
  drain: "M8 2.5s4 4.3 4 7a4 4 0 0 1-8 0c0-2.7 4-7 4-7z",
  keyboard: "M2 4.5h12v7H2zM4.5 7h.01M7 7h.01M9.5 7h.01M12 7h.01M5 9.5h6",
  trigger: "M9 2 4 9h3.5L7 14l5-7H8.5z",
  lock: "M4 7.5h8v6H4zM5.8 7.5V5.2a2.2 2.2 0 0 1 4.4 0v2.3",
  edit: "M3 13l.6-2.8 7-7 2.2 2.2-7 7zM9.4 4.4l2.2 2.2",
} as const;

export type IconName = keyof typeof SHAPES;

export function Icon({ name, label }: { name: IconName; label?: string }) {
  const voice = label === undefined ? { "aria-hidden": true as const } : { role: "img" as const, "aria-label": label };
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 16 16" width="16" height="16" {...voice}>
      <path d={SHAPES[name]} />
    </svg>
  );
}
