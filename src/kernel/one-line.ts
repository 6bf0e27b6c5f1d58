/** Keeps text that somebody else wrote on one line and in one direction. The caller bounds its length. */

/** Control characters, and those that change the direction of text. */
const acting = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

export const onOneLine = (text: string): string => text.replace(acting, ' ');
