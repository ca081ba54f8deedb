// How much room words take before they are drawn, and what is left of them where there is not enough. Pure.

/** About how wide a character is, as a share of the size of the type. Wide scripts count whole, so that no label overlaps. */
function share(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  if (code >= 0x1100 && /\p{Script=Han}|\p{Script=Hangul}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Emoji_Presentation}/u.test(character)) return 1;
  if (/[mwMW@%]/.test(character)) return 0.86;
  if (/[iljtfr.,:;'|!()[\] /]/.test(character)) return 0.34;
  return /[A-Z]/.test(character) ? 0.68 : 0.56;
}

/** About how many pixels a line of this size of type takes. */
export function widthOf(text: string, size: number): number {
  let sum = 0;
  for (const character of text) sum += share(character);
  return sum * size;
}

/** The text, or as much of its begin as fits, with an ellipsis. */
export function fit(text: string, room: number, size: number): string {
  if (widthOf(text, size) <= room) return text;
  let sum = size;
  let kept = '';
  for (const character of text) {
    sum += share(character) * size;
    if (sum > room) break;
    kept += character;
  }
  return `${kept.trimEnd()}…`;
}
