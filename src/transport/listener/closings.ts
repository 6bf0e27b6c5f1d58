/** How the listener ends connections: each for a reason, which is counted, and noted if it is a fault. */
import type { SampledLog } from '../../kernel/sampled-log.js';
import type { ConnectionTable, Entry } from './connection-table.js';
import type { Connection } from './connection.js';

/** Why the listener closes a connection, with the sentence for the log; null: not a fault. */
const closings = {
  evicted: 'a connection without a session was closed to let another one in',
  refused: 'a connection was refused: SVC_MAX_CONNECTIONS are open, and each has a session',
  idle: null,
  silent: 'the first bytes of a connection did not arrive in time',
  foreign: 'a connection did not start with the HTTP/2 preface',
  costly: 'a connection without a session sent more than an agent does, or started calls that it did not finish',
  no_proxy_header: 'a balancer (SVC_AGENT_PROXY_FROM) did not start a connection with a valid PROXY v2 header',
  no_target: 'the REALITY target (SVC_REALITY_TARGET) cannot be reached, so a connection was closed as it would be',
  unfinished: null,
  spent: null,
  crowded: 'a connection to the REALITY target was closed to let another one in: there are too many at once',
} as const;

export type Closing = keyof typeof closings;

/** How many connections were closed, by reason. */
export type Closed = Readonly<Record<Closing, number>>;

export function createClosings(table: Pick<ConnectionTable<Connection>, 'remove'>, refusals: Pick<SampledLog, 'note'>) {
  const reasons = Object.keys(closings) as readonly Closing[];
  const counts = new Map(reasons.map((reason) => [reason, 0]));
  return {
    end(entry: Entry<Connection>, reason: Closing): void {
      const { value: connection } = entry;
      table.remove(entry);
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
      const sentence = closings[reason];
      const event = { reason: `connection_${reason}`, address: connection.remoteAddress };
      if (sentence !== null) refusals.note(event, sentence);
      connection.destroy();
    },
    closed: (): Closed => Object.fromEntries(counts) as Record<Closing, number>,
  };
}
