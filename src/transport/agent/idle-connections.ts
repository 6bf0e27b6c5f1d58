/**
 * Connections that carry no session: cut after a minute. HTTP/2's own idle time does not see a call that is opened and
 * never finished, and connections are bounded, so without this a stranger could hold them all.
 */
import type { Clock } from '../../kernel/clock.js';
import type { AgentConnection } from './agent-stream.js';
import { tuning } from './tuning.js';

export interface IdleConnections {
  add(connection: AgentConnection): void;
  /** The connection carries a session until `closed` resolves. */
  attached(connection: AgentConnection, closed: Promise<void>): void;
  sweep(): void;
}

export function createIdleConnections(clock: Clock): IdleConnections {
  /** Those without a session, since when, in that order. Bounded by the listener. */
  const idle = new Map<AgentConnection, number>();
  const carried = new Map<AgentConnection, number>();

  const rest = (connection: AgentConnection): void => {
    if (!connection.closed) idle.set(connection, clock.monotonic());
  };

  return {
    add(connection) {
      rest(connection);
      connection.onClose(() => {
        idle.delete(connection);
        carried.delete(connection);
      });
    },
    attached(connection, closed) {
      idle.delete(connection);
      carried.set(connection, (carried.get(connection) ?? 0) + 1);
      void closed.then(() => {
        const left = (carried.get(connection) ?? 1) - 1;
        if (left > 0) {
          carried.set(connection, left);
          return;
        }
        carried.delete(connection);
        rest(connection);
      });
    },
    sweep() {
      const now = clock.monotonic();
      for (const [connection, since] of idle) {
        if (now - since <= tuning.connectionIdleMs) return;
        connection.destroy();
      }
    },
  };
}
