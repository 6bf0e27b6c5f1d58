/**
 * What a connection may cost before it has a session. A stranger who sends endlessly, or starts calls without finishing
 * them, is recognised by the bytes that wait for an answer, and the connection is closed. The listener has the time
 * limits and the number of connections. Serves the bound of 32 KiB per connection of
 * `docs/contract/agent-protocol.md#the-listener`: a connection that exceeds it is closed within 0.4 to 2.2 s, and holds
 * more until then. `npm run bench -- strangers` measures both.
 */
import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { AgentConnection } from '../listener/connection.js';
import type { GuardedStream } from './guarded-stream.js';

/**
 * Memory that a connection without a session may hold at two consecutive checks: bytes received since its last complete
 * request, plus 512 for each piece of an unfinished request, and the header table that its peer fills.
 */
const maxUnansweredBytes = 4 * 1024;
const pieceBytes = 512;
const headerTableBytes = 1024;
/** Unfinished requests at consecutive checks, added up: one for 2 s, or four for half a second. */
const maxUnfinishedSum = 10;

/** A connection that is watched while it has no session. There are many, so it is data rather than functions. */
export interface Unproven {
  readonly connection: AgentConnection;
  readonly stream: GuardedStream;
  session: ServerHttp2Session | undefined;
  /** Calls whose request has not ended. */
  readonly unfinished: ServerHttp2Stream[];
  /** How many pieces their requests arrived in. */
  pieces: number;
  /** Unfinished calls, including those waiting for their answer. */
  openCalls: number;
  /** The size of its header table in bytes, and how many bytes were unanswered when that size was read. */
  tableBytes: number;
  tableReadAt: number;
  /** Consecutive checks that found too many bytes unanswered. */
  costlyChecks: number;
  /** Unfinished calls found by consecutive checks, added up. */
  unfinishedSum: number;
}

/** Watches a connection until it has proven itself. An agent stays far below these bounds. */
export function watchUnproven(connection: AgentConnection, stream: GuardedStream): Unproven {
  const unproven: Unproven = {
    connection,
    stream,
    session: undefined,
    unfinished: [],
    pieces: 0,
    openCalls: 0,
    tableBytes: 0,
    tableReadAt: 0,
    costlyChecks: 0,
    unfinishedSum: 0,
  };
  connection.watch(() => {
    unproven.costlyChecks = isCostly(unproven) ? unproven.costlyChecks + 1 : 0;
    unproven.unfinishedSum = unproven.unfinished.length === 0 ? 0 : unproven.unfinishedSum + unproven.unfinished.length;
    // An agent's request may be in flight at one check, but not at two.
    return unproven.costlyChecks > 1 || unproven.unfinishedSum > maxUnfinishedSum;
  });
  return unproven;
}

/** A call has started on the connection, and is being served. */
export function callStarted(unproven: Unproven, stream: ServerHttp2Stream): void {
  const { connection, unfinished } = unproven;
  if (connection.hasSession || stream.destroyed) return;
  unproven.openCalls += 1;
  unfinished.push(stream);
  const finished = (): void => {
    const index = unfinished.indexOf(stream);
    if (index === -1) return;
    unfinished.splice(index, 1);
    if (unfinished.length > 0) return;
    connection.answered();
    unproven.pieces = 0;
  };
  stream.once('end', finished);
  stream.once('close', () => {
    finished();
    unproven.openCalls -= 1;
    unproven.tableReadAt = -1;
  });
  // The request of a refused call stays unread; listening would read it.
  if (stream.listenerCount('data') === 0) return;
  const count = (): void => {
    unproven.pieces += 1;
    if (connection.hasSession) stream.off('data', count);
  };
  stream.on('data', count);
}

function isCostly(unproven: Unproven): boolean {
  const { connection, pieces, openCalls } = unproven;
  const { unansweredBytes } = connection;
  if (unansweredBytes + pieces * pieceBytes > maxUnansweredBytes) return true;
  // An agent waiting for its answer may have long headers.
  if (openCalls > 0) return false;
  if (unproven.tableReadAt !== unansweredBytes) {
    unproven.tableReadAt = unansweredBytes;
    unproven.tableBytes = unproven.session?.state.inflateDynamicTableSize ?? 0;
  }
  return unproven.tableBytes > headerTableBytes;
}
