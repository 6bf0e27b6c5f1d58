/**
 * The event with the heads of the other two chained streams. It is written to every chained stream at each start and
 * once a day, so that none can be rolled back alone. It has no other meaning and no audit entry. Implements
 * `docs/log-chain.md`.
 */
import type { RecordedCommand } from '../../kernel/event.js';
import { ok } from '../../kernel/result.js';
import type { EventSchemas } from '../resource/declaration.js';
import type { Decision } from '../resource/refusal.js';

/** The head of a stream's log chain. Operators can print it, keep it elsewhere, and compare it later. */
export interface LogHead {
  readonly stream: string;
  /** Revision of the last event. */
  readonly revision: number;
  /** MAC of the last command, base64url. */
  readonly mac: string;
}

export type LogHeadsRecorded = {
  readonly type: 'LogHeadsRecorded';
  readonly data: { readonly heads: readonly LogHead[] };
};

export const logChainEvents: EventSchemas<LogHeadsRecorded> = { LogHeadsRecorded: {} };

/** The heads that an event names; undefined for any other event. */
export function headsNamedBy(event: { readonly type: string; readonly data: object }): readonly LogHead[] | undefined {
  const type: LogHeadsRecorded['type'] = 'LogHeadsRecorded';
  return event.type === type ? (event as LogHeadsRecorded).data.heads : undefined;
}

/** Whether a command only names heads. */
export const namesHeads = (command: RecordedCommand): boolean => headsNamedBy(command.events[0]) !== undefined;

/** Whether the named heads cover the others: the same streams, at least as new. */
export function namesAll(named: readonly LogHead[], heads: readonly LogHead[]): boolean {
  return heads.every(({ stream, revision }) => named.some((one) => one.stream === stream && one.revision >= revision));
}

/** Records the heads of the other streams, unless they have been named. */
export interface RecordLogHeads {
  readonly type: 'RecordLogHeads';
  readonly heads: readonly LogHead[];
}

export function decideLogHeads(
  { named }: { readonly named: readonly LogHead[] },
  { heads }: RecordLogHeads,
): Decision<LogHeadsRecorded> {
  return ok(namesAll(named, heads) ? [] : [{ type: 'LogHeadsRecorded', data: { heads } }]);
}

/** The text form of a head: `stream@revision:mac`. */
export const headText = ({ stream, revision, mac }: LogHead): string => `${stream}@${revision}:${mac}`;

/** Reads the text form of a head; undefined for any other text. */
export function parseHead(text: string): LogHead | undefined {
  const [, stream, revision, mac] = /^([a-z-]+)@(\d{1,15}):([A-Za-z0-9_-]{43})$/.exec(text.trim()) ?? [];
  if (stream === undefined || revision === undefined || mac === undefined) return undefined;
  return { stream, revision: Number(revision), mac };
}
