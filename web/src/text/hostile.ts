// Makes text that anybody may have written fit to be looked at. Nothing is dropped: what would be invisible, or
// would turn the text around it, becomes a mark that says what it is. Pure.

export interface Piece {
  text: string;
  isMark: boolean;
}

// C0 but tab and newline, DEL, C1, soft hyphen, Arabic mark, zero-width and bidi marks, separators, lone halves.
const UNSEEN =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** The text in pieces: plain ones, and marks in place of what cannot be seen. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(UNSEEN)) {
    if (match.index > end) found.push({ text: text.slice(end, match.index), isMark: false });
    found.push({ text: nameOf(match[0]), isMark: true });
    end = match.index + match[0].length;
  }
  if (end < text.length) found.push({ text: text.slice(end), isMark: false });
  return found;
}

function nameOf(character: string): string {
  const code = character.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code); // the picture of the control character
  if (code === 0x7f) return "\u2421";
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

/** The same in one string, for attributes such as titles. */
export function visible(text: string): string {
  return pieces(text)
    .map((piece) => (piece.isMark ? `[${piece.text}]` : piece.text))
    .join("");
}

/** At most `most` characters, never half a pair; how many were left out. */
export function cut(text: string, most: number): { text: string; left: number } {
  if (text.length <= most) return { text, left: 0 };
  const last = text.charCodeAt(most - 1);
  const end = last >= 0xd800 && last <= 0xdbff ? most - 1 : most;
  return { text: text.slice(0, end), left: text.length - end };
}

/** One line for a list: breaks become marks, so that a row keeps its height. */
export function oneLine(text: string, most = 300): string {
  return cut(
    text.replaceAll("\r\n", "⏎").replaceAll(/[\n\t]/g, (found) => (found === "\n" ? "⏎" : " ")),
    most,
  ).text;
}
