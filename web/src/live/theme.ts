// Light, dark, or as the system has it. The choice is kept in this browser.
import { cell } from "./cell";

export type Theme = "system" | "light" | "dark";
const KEY = "millpond.theme";
const THEMES: readonly Theme[] = ["system", "light", "dark"];

export const theme = cell<Theme>(remembered());
/** What is really shown; charts on a canvas must be drawn again when it changes. */
export const shade = cell<"light" | "dark">(resolve(theme.get()));

const system = window.matchMedia("(prefers-color-scheme: dark)");
system.addEventListener("change", show);

function remembered(): Theme {
  try {
    const kept = localStorage.getItem(KEY) as Theme | null;
    return kept !== null && THEMES.includes(kept) ? kept : "system";
  } catch {
    return "system"; // storage is switched off: the choice lasts as long as the page
  }
}

function resolve(choice: Theme): "light" | "dark" {
  if (choice !== "system") return choice;
  return window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function show(): void {
  const resolved = resolve(theme.get());
  document.documentElement.dataset["theme"] = resolved;
  shade.set(resolved);
}

export function setTheme(choice: Theme): void {
  theme.set(choice);
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // as above
  }
  show();
}

export function nextTheme(): void {
  setTheme(resolve(theme.get()) === "dark" ? "light" : "dark");
}

show();
