// Numbers as people read them: 1.2 k, 3.4 s, 512 MB. Pure. A number that is not known is a dash.
export const UNKNOWN = "–";
const THIN = "\u202f"; // a narrow space that does not break

/** Three figures at most: 950, 1.2 k, 34 k, 1.5 M. */
export function count(value: number | null | undefined): string {
  if (!isNumber(value)) return UNKNOWN;
  const size = Math.abs(value);
  if (size < 1000) return trim(value, size < 10 && !Number.isInteger(value) ? 1 : 0);
  const [unit, letter] = size < 999_500 ? [1e3, "k"] : size < 999_500_000 ? [1e6, "M"] : [1e9, "G"];
  const scaled = value / (unit as number);
  return `${trim(scaled, Math.abs(scaled) < 9.95 ? 1 : 0)}${THIN}${letter}`;
}

/** Every figure, in groups of three: 50,000. */
export function exact(value: number | null | undefined): string {
  return isNumber(value) ? value.toLocaleString("en-US", { maximumFractionDigits: 3 }) : UNKNOWN;
}

/** So many of something, with the right ending: 1 job, 2 jobs, 3.4 k jobs. */
export function many(value: number, one: string, more = `${one}s`): string {
  return `${exact(value)} ${value === 1 ? one : more}`;
}

/** A duration: 4 ms, 3.4 s, 2 min 5 s, 3 h 12 min, 4 d 2 h. */
export function span(seconds: number | null | undefined): string {
  if (!isNumber(seconds)) return UNKNOWN;
  const size = Math.abs(seconds);
  const sign = seconds < 0 ? "−" : "";
  if (size === 0) return `0${THIN}s`;
  if (size < 0.0005) return `${sign}<1${THIN}ms`;
  if (size < 0.9995) return `${sign}${Math.round(size * 1000)}${THIN}ms`;
  if (size < 59.95) return `${sign}${trim(size, size < 9.95 ? 1 : 0)}${THIN}s`;
  const pairs: [number, string, number, string][] = [
    [60, "min", 1, "s"],
    [3600, "h", 60, "min"],
    [86_400, "d", 3600, "h"],
  ];
  const pair = pairs.findLast(([unit]) => Math.round(size) >= unit) ?? pairs[0]!;
  const [unit, name, smaller, smallerName] = pair;
  const whole = Math.floor(Math.round(size) / unit);
  const rest = Math.floor((Math.round(size) - whole * unit) / smaller);
  const tail = rest && whole < 10 ? ` ${rest}${THIN}${smallerName}` : "";
  return `${sign}${whole}${THIN}${name}${tail}`;
}

/** A size in powers of 1000, as disks and `"512MB"` count. */
export function size(bytes: number | null | undefined): string {
  if (!isNumber(bytes)) return UNKNOWN;
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${trim(value, unit > 0 && Math.abs(value) < 9.95 ? 1 : 0)}${THIN}${units[unit]}`;
}

/** So many a minute, or a second where that is the better unit. */
export function rate(perMinute: number | null | undefined): string {
  if (!isNumber(perMinute)) return UNKNOWN;
  return perMinute >= 600 ? `${count(perMinute / 60)}/s` : `${count(perMinute)}/min`;
}

export function percent(fraction: number | null | undefined): string {
  return isNumber(fraction) ? `${Math.round(fraction * 100)}${THIN}%` : UNKNOWN;
}

function isNumber(value: number | null | undefined): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

function trim(value: number, digits: number): string {
  const text = value.toFixed(digits);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}
