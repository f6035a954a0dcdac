// How far back charts look.
export type Range = "live" | "1h" | "6h" | "24h";

export const RANGES: readonly (readonly [Range, string])[] = [
  ["live", "Live"],
  ["1h", "1 h"],
  ["6h", "6 h"],
  ["24h", "24 h"],
];
