// Keys that work everywhere: g and a letter goes to a page, / searches, ? explains, t turns the light on or
// off. None of them acts while somebody types or a dialog is open.
import { cell } from "../live/cell";
import { go, href } from "../live/route";
import { nextTheme } from "../live/theme";
import { PLACES } from "./places";

export const helpIsOpen = cell(false);
const PATIENCE = 1500;
let goUntil = 0;

export function listenToKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    if (press(event.key)) event.preventDefault();
  });
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof Element &&
    target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select") !== null
  );
}

/** True when the key meant something. */
function press(key: string): boolean {
  const place = Date.now() < goUntil ? PLACES.find((one) => one.key === key) : undefined;
  goUntil = key === "g" ? Date.now() + PATIENCE : 0;
  if (place !== undefined) go(href(place.page));
  else if (key === "/") focusSearch();
  else if (key === "?") helpIsOpen.set(true);
  else if (key === "t") nextTheme();
  else if (key === "j" || key === "k") return focusRows();
  else return key === "g";
  return true;
}

/** Into the rows of the page's first table; from there its own keys move on. */
function focusRows(): boolean {
  const rows = document.querySelector("main .rows tbody");
  const row = rows?.querySelector<HTMLElement>("tr[tabindex='0']") ?? rows?.querySelector<HTMLElement>("tr[tabindex]");
  row?.focus();
  return row != null;
}

function focusSearch(): void {
  const fields = document.querySelectorAll<HTMLInputElement>("main [type=search], header [type=search]");
  const field = [...fields].find((one) => one.offsetParent !== null);
  field?.focus();
  field?.select();
}
