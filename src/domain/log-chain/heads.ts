/**
 * The event with the heads of the other two chained streams. Each start, and each day, writes one to every chained stream,
 * so that none of them can be rolled back alone. It changes nothing in the meaning of the stream that it stands in, and has
 * no audit entry. Implements `docs/log-chain.md`.
 */
import type { RecordedCommand } from '../../kernel/event.js';
import { ok } from '../../kernel/result.js';
import type { EventSchemas } from '../resource/declaration.js';
import type { Decision } from '../resource/refusal.js';

/** Where the log chain of a stream stood. Operators also print it, keep it elsewhere, and compare it later. */
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

export const logChainEvents: EventSchemas<LogHeadsRecorded> = { LogHeadsRecorded: { schemaVersion: 1 } };

/** The heads that an event names; undefined for any other event. */
export function headsNamedBy(event: { readonly type: string; readonly data: object }): readonly LogHead[] | undefined {
  const type: LogHeadsRecorded['type'] = 'LogHeadsRecorded';
  return event.type === type ? (event as LogHeadsRecorded).data.heads : undefined;
}

/** True for a command that names heads, and changes nothing that its stream holds. */
export const namesHeads = (command: RecordedCommand): boolean => headsNamedBy(command.events[0]) !== undefined;

/** True when heads that were named say all that others would: of the same streams, and no older. */
export function namesAll(named: readonly LogHead[], heads: readonly LogHead[]): boolean {
  return heads.every(({ stream, revision }) => named.some((one) => one.stream === stream && one.revision >= revision));
}

/** Names the heads of the other streams, unless they are named already. */
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
