/** The head of a log chain as a line of text, as it is printed, kept elsewhere and given back to be looked for. */
export interface LogHead {
  readonly stream: string;
  /** Of the last event. */
  readonly revision: number;
  /** Of the last command, base64url. */
  readonly mac: string;
}

export const headText = ({ stream, revision, mac }: LogHead): string => `${stream}@${revision}:${mac}`;

/** @returns undefined when the text is no head */
export function parseHead(text: string): LogHead | undefined {
  const [, stream, revision, mac] = /^([a-z-]+)@(\d{1,15}):([A-Za-z0-9_-]{43})$/.exec(text.trim()) ?? [];
  if (stream === undefined || revision === undefined || mac === undefined) return undefined;
  return { stream, revision: Number(revision), mac };
}
