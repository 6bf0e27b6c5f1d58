/**
 * Closes connections that have carried no session for a minute. HTTP/2's own idle timeout does not apply while a call is
 * open, and the number of connections is bounded, so without this a stranger could hold all of them.
 */
import type { Clock } from '../../kernel/clock.js';
import type { AgentConnection } from './agent-stream.js';
import { tuning } from './tuning.js';

interface IdleConnections {
  add(connection: AgentConnection): void;
  /** The connection carries a session until `closed` resolves. */
  attached(connection: AgentConnection, closed: Promise<void>): void;
  sweep(): void;
}

export function createIdleConnections(clock: Clock): IdleConnections {
  /** Connections without a session and since when, oldest first. Bounded by the listener. */
  const idle = new Map<AgentConnection, number>();
  /** How many sessions a connection carries. */
  const sessions = new Map<AgentConnection, number>();

  const markIdle = (connection: AgentConnection): void => {
    if (!connection.closed) idle.set(connection, clock.monotonic());
  };

  return {
    add(connection) {
      markIdle(connection);
      connection.onClose(() => {
        idle.delete(connection);
        sessions.delete(connection);
      });
    },
    attached(connection, closed) {
      idle.delete(connection);
      sessions.set(connection, (sessions.get(connection) ?? 0) + 1);
      void closed.then(() => {
        const left = (sessions.get(connection) ?? 1) - 1;
        if (left > 0) {
          sessions.set(connection, left);
          return;
        }
        sessions.delete(connection);
        markIdle(connection);
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
