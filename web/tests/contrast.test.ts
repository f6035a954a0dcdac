import assert from "node:assert/strict";
import { test } from "node:test";
import tokens from "../src/styles/tokens.css";

type Palette = Record<string, string>;

function palettes(): Palette[] {
  const blocks = String(tokens).split("}").slice(0, 2);
  const colours = (block: string) =>
    Object.fromEntries([...block.matchAll(/--([a-z0-9-]+):\s*(#[0-9a-f]{6})/g)].map((one) => [one[1]!, one[2]!]));
  const light = colours(blocks[0]!);
  return [light, { ...light, ...colours(blocks[1]!) }];
}

function brightness(colour: string): number {
  const parts = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255);
  const [red, green, blue] = parts.map((value) =>
    value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

function contrast(one: string, other: string): number {
  const [dark, light] = [brightness(one), brightness(other)].sort((a, b) => a - b);
  return (light! + 0.05) / (dark! + 0.05);
}

const PAIRS: [string, string[]][] = [
  ["text", ["bg", "surface", "surface-2", "accent-soft", "warn-soft", "error-soft"]],
  ["text-2", ["bg", "surface", "surface-2", "muted-soft"]],
  ["text-3", ["bg", "surface", "surface-2"]],
  ["accent", ["bg", "surface", "accent-soft"]],
  ["accent-strong", ["accent-soft"]],
  ["ok", ["surface", "ok-soft"]],
  ["warn", ["surface", "warn-soft"]],
  ["error", ["surface", "error-soft"]],
  ["violet", ["surface", "violet-soft"]],
  ["on-accent", ["accent"]],
];

test("text keeps a contrast of 4.5 on whatever it stands, in light and in dark", () => {
  for (const palette of palettes()) {
    for (const [ink, grounds] of PAIRS) {
      for (const ground of grounds) {
        const found = contrast(palette[ink]!, palette[ground]!);
        assert(found >= 4.5, `${ink} on ${ground}: ${found.toFixed(2)}`);
      }
    }
  }
});

test("curves can be told from their ground", () => {
  for (const palette of palettes()) {
    for (const tone of ["accent", "ok", "error", "violet", "muted"]) {
      const found = contrast(palette[`line-${tone}`]!, palette["surface"]!);
      assert(found >= 2.7, `line-${tone}: ${found.toFixed(2)}`);
    }
  }
});
