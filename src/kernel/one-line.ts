/** Text that somebody else wrote, where it must not act: on one line, in one direction. Bounds are the caller's. */

/** Control characters, and those that turn the direction of text around. */
const acting = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

export const onOneLine = (text: string): string => text.replace(acting, ' ');
