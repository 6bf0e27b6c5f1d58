/**
 * Records every request, the instance that it was sent to and its outcome: acknowledged, refused (nothing may be written)
 * or unknown (it may be written). `judgement.ts` compares the log with these records.
 */
import { randomUUID } from 'node:crypto';
import type { Answer, RestClient } from '../../../scripts/stack/rest-client.js';

export type Outcome = 'acknowledged' | 'refused' | 'unknown';

export interface Command {
  readonly method: 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
  readonly key?: string;
  readonly ifMatch?: string;
}

/** One request. A command that is repeated with its idempotency key has several. */
export interface Attempt {
  readonly command: Command;
  readonly instance: number;
  readonly requestId: string;
  readonly outcome: Outcome;
  /** Status and error of the answer, or why there is none. */
  readonly said: string;
  readonly resourceId?: string;
  /** `x-position` of the answer. */
  readonly position?: number;
  readonly lagging?: boolean;
  readonly data?: Readonly<Record<string, unknown>>;
}

export interface Book {
  readonly attempts: readonly Attempt[];
  /** Paths of all DELETE requests, answered or not. */
  readonly deletes: ReadonlySet<string>;
  /** Sends a command once and records the outcome. Never throws. */
  ask(instance: number, client: RestClient, command: Command): Promise<Attempt>;
}

export function createBook(): Book {
  const attempts: Attempt[] = [];
  const deletes = new Set<string>();
  return {
    attempts,
    deletes,
    async ask(instance, client, command) {
      const requestId = `chaos-${randomUUID()}`;
      const { method, path, body, key, ifMatch } = command;
      if (method === 'DELETE') deletes.add(path);
      const headers = {
        'x-request-id': requestId,
        ...(key === undefined ? {} : { 'idempotency-key': key }),
        ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
      };
      const sent = { command, instance, requestId };
      let attempt: Attempt;
      try {
        attempt = { ...sent, ...judged(await client.send(method, path, body, headers)) };
      } catch (error) {
        const said = whyNoAnswer(error);
        attempt = { ...sent, outcome: said === connectionRefused ? 'refused' : 'unknown', said };
      }
      attempts.push(attempt);
      return attempt;
    },
  };
}

/** The instance is down: the request was never sent. */
export const connectionRefused = 'ECONNREFUSED';

function whyNoAnswer(error: unknown): string {
  const { message, cause } = error instanceof Error ? error : { message: String(error), cause: undefined };
  const code = (cause as { readonly code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : message;
}

/** `docs/contract/rest.md#errors`: with a 503 nothing was written unless its message says otherwise. */
function judged({ status, headers, body }: Answer): Omit<Attempt, 'command' | 'instance' | 'requestId'> {
  const said = `${status} ${body.error ?? ''}`.trim();
  if (status >= 500) {
    const nothingWritten = status === 503 && !/may have been|the change was written/.test(said);
    return { outcome: nothingWritten ? 'refused' : 'unknown', said };
  }
  if (status >= 400 || body.data === null) return { outcome: 'refused', said };
  const { id } = body.data;
  return {
    outcome: 'acknowledged',
    said,
    data: body.data,
    position: Number(headers.get('x-position')),
    lagging: headers.get('x-projection-lag') !== null,
    ...(typeof id === 'string' ? { resourceId: id } : {}),
  };
}
