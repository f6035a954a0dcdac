import assert from "node:assert/strict";
import { test } from "node:test";
import { cut, oneLine, pieces, visible } from "../src/text/hostile";
import { count, exact, many, percent, rate, size, span, UNKNOWN } from "../src/text/numbers";
import { ago, between, moment } from "../src/text/times";

const plain = (text: string) => text.replaceAll("\u202f", " ");
function table<T>(format: (value: T) => string, cases: [T, string][]): void {
  for (const [value, expected] of cases) assert.equal(plain(format(value)), expected, String(value));
}

test("counts keep three figures at most", () => {
  table(count, [
    [0, "0"],
    [7, "7"],
    [0.25, "0.3"],
    [950, "950"],
    [1000, "1 k"],
    [1234, "1.2 k"],
    [34_499, "34 k"],
    [999_499, "999 k"],
    [999_600, "1 M"],
    [1_540_000, "1.5 M"],
    [2e9, "2 G"],
    [-1500, "-1.5 k"],
  ]);
});

test("durations take the unit people would", () => {
  table(span, [
    [0, "0 s"],
    [0.00002, "<1 ms"],
    [0.0042, "4 ms"],
    [0.9996, "1 s"],
    [3.44, "3.4 s"],
    [42, "42 s"],
    [59.97, "1 min"],
    [125, "2 min 5 s"],
    [3600, "1 h"],
    [11_580, "3 h 13 min"],
    [86_400 * 4 + 7300, "4 d 2 h"],
    [86_400 * 40, "40 d"],
    [-3, "−3 s"],
  ]);
});

test("sizes, rates, shares and plurals", () => {
  table(size, [
    [0, "0 B"],
    [999, "999 B"],
    [1000, "1 kB"],
    [104_857_600, "105 MB"],
    [1_500_000_000, "1.5 GB"],
  ]);
  table(rate, [
    [0, "0/min"],
    [220.5, "221/min"],
    [5.5, "5.5/min"],
    [6000, "100/s"],
  ]);
  assert.equal(plain(percent(0.404)), "40 %");
  assert.equal(exact(50_000), "50,000");
  assert.equal(many(1, "job"), "1 job");
  assert.equal(many(1200, "job"), "1,200 jobs");
});

test("what is not known is a dash", () => {
  for (const format of [count, exact, span, size, rate, percent]) {
    for (const nothing of [null, undefined, Number.NaN, Infinity]) assert.equal(format(nothing), UNKNOWN);
  }
});

test("instants are told from now, in one unit", () => {
  const now = Date.parse("2026-11-16T12:00:00Z");
  assert.equal(plain(ago("2026-11-16T11:59:57Z", now)), "3 s ago");
  assert.equal(plain(ago("2026-11-16T12:02:10Z", now)), "in 2 min");
  assert.equal(ago("2026-11-16T12:00:00.2Z", now), "just now");
  assert.equal(ago(null, now), UNKNOWN);
  assert.equal(ago("rubbish", now), UNKNOWN);
  assert.equal(moment("2024-02-03T10:00:00Z", now).includes("2024"), true);
  assert.equal(between("2026-11-16T12:00:00Z", "2026-11-16T12:00:01.5Z"), 1.5);
});

test("what cannot be seen becomes a mark, and nothing is lost", () => {
  assert.deepEqual(pieces("plain ünï 🎉 text"), [{ text: "plain ünï 🎉 text", isMark: false }]);
  assert.deepEqual(pieces("a\u0000b"), [
    { text: "a", isMark: false },
    { text: "␀", isMark: true },
    { text: "b", isMark: false },
  ]);
  assert.equal(visible("\u202egnp.exe"), "[U+202E]gnp.exe");
  assert.equal(visible("\u001b[31m\u009b\u007f"), "[␛][31m[U+009B][␡]");
  assert.equal(visible("\u200b\ufeff\u2066\u2028\u061c"), "[U+200B][U+FEFF][U+2066][U+2028][U+061C]");
  assert.equal(visible("\ud800x\udc00"), "[U+D800]x[U+DC00]");
  assert.equal(visible("line\n\ttab"), "line\n\ttab");
});

test("a cut never leaves half a character, and says what is left", () => {
  assert.deepEqual(cut("abc", 5), { text: "abc", left: 0 });
  assert.deepEqual(cut("ab🎉", 3), { text: "ab", left: 2 });
  assert.equal(cut("x".repeat(1_000_000), 300).left, 999_700);
});

test("a row of a list is one line", () => {
  assert.equal(oneLine("a\r\nb\nc\td"), "a⏎b⏎c d");
});
