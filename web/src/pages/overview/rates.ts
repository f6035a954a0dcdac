// Counts per step as rates per minute. Pure.

/** The last step has not ended: it counts together with the one before, as the server counts "the last minute", so
 * that charts, tiles and tables have the same number. */
export function perMinutes(values: readonly number[], step: number, passed: number): number[] {
  return values.map((value, place) => {
    const before = values[place - 1];
    if (place < values.length - 1 || before === undefined) return (value * 60) / step;
    return ((before + value) * 60) / (step + Math.min(Math.max(passed, 0), step));
  });
}
