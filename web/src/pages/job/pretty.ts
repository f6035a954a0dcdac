// A JSON value as indented text; a plain string stays as it is, so that its lines can be read. Pure.
export function pretty(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  return JSON.stringify(value, null, 2) ?? "null";
}
