// Counts per step as rates per minute. Pure.
const TOO_SHORT = 15; // seconds of a step from which no rate can be told

export function perMinutes(values: readonly number[], step: number, passed: number): (number | null)[] {
  return values.map((value, place) => {
    if (place < values.length - 1) return (value * 60) / step;
    return passed < TOO_SHORT ? null : (value * 60) / Math.min(passed, step);
  });
}
