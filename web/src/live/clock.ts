// A clock for ages on the page: one timer however many components show the time.
import { cell, useCell } from "./cell";
import { serverNow } from "./feed";

const seconds = cell(Date.now());
window.setInterval(() => {
  if (!document.hidden) seconds.set(serverNow());
}, 1000);

/** The server's time, drawn again every second. */
export function useNow(): number {
  useCell(seconds);
  return serverNow();
}
