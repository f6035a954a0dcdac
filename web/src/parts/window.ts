// Which rows of a long list are worth drawing. Pure.

export interface Window {
  first: number;
  last: number; // one behind the last drawn row
  before: number; // pixels above
  after: number; // pixels below
}

/** `top` is where the list begins, seen from the top of the view (negative once scrolled past). */
export function visibleRows(count: number, height: number, top: number, view: number, extra = 8): Window {
  const first = clamp(Math.floor(-top / height) - extra, 0, count);
  const last = clamp(Math.ceil((view - top) / height) + extra, first, count);
  return { first, last, before: first * height, after: (count - last) * height };
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}
