/**
 * Sessions that were opened but not attached yet: kept for 10 s, at most two per node (the oldest is dropped) and any
 * number per join token, found only from the connection that opened them, and taken once. Implements the pending
 * sessions of `docs/contract/agent-protocol.md#opensession` and the attaching of
 * `docs/contract/agent-protocol.md#control`.
 */
import { joinTokenIn } from '../../../kernel/ids.js';
import { limits } from '../../../kernel/limits.js';
import type { NoiseSession } from '../../../channel/noise/handshake.js';
import type { AgentConnection } from '../../listener/connection.js';
import type { AgentIntervals } from '../heartbeats.js';

export interface PendingSession {
  readonly nodeId: string;
  /** 16 bytes. */
  readonly sessionId: Uint8Array;
  /** The same in lower-case hex. */
  readonly id: string;
  /** The PSK that it was opened under. */
  readonly psk: { readonly fingerprint: string; readonly isCandidate: boolean };
  readonly connection: AgentConnection;
  readonly noise: NoiseSession;
  /** Monotonic milliseconds. */
  readonly openedAt: number;
  /** The intervals of the grant. */
  readonly intervals: AgentIntervals;
}

export type PendingTable = ReturnType<typeof createPendingTable>;

/** @param onFreed called whenever a session has left the table */
export function createPendingTable(onFreed: () => void) {
  /** In the order of opening. */
  const byId = new Map<string, PendingSession>();
  const byNode = new Map<string, Set<PendingSession>>();
  /** Gives a connection one close listener, however many sessions it opens. */
  const byConnection = new WeakMap<AgentConnection, Set<PendingSession>>();

  const remove = (session: PendingSession): void => {
    if (!byId.delete(session.id)) return;
    const ofNode = byNode.get(session.nodeId);
    ofNode?.delete(session);
    if (ofNode?.size === 0) byNode.delete(session.nodeId);
    byConnection.get(session.connection)?.delete(session);
    session.connection.sessionEnded();
    onFreed();
  };
  const drop = (session: PendingSession): void => {
    session.noise.send.wipe();
    session.noise.receive.wipe();
    remove(session);
  };
  const expired = (session: PendingSession, now: number): boolean =>
    now - session.openedAt > limits.agent.pendingSessionMs;

  return {
    add(session: PendingSession): void {
      const ofNode = byNode.get(session.nodeId) ?? new Set();
      for (const oldest of ofNode) {
        if (ofNode.size < limits.agent.pendingPerNode || joinTokenIn(session.nodeId) !== undefined) break;
        drop(oldest);
      }
      byNode.set(session.nodeId, ofNode.add(session));
      byId.set(session.id, session);
      session.connection.sessionOpened();
      const ofConnection = byConnection.get(session.connection);
      if (ofConnection !== undefined) {
        ofConnection.add(session);
        return;
      }
      const sessions = new Set([session]);
      byConnection.set(session.connection, sessions);
      session.connection.onClose(() => {
        for (const left of sessions) drop(left);
      });
    },
    /** Removes and returns a session; undefined if this connection has no pending session with that id. */
    take(sessionId: Uint8Array, connection: AgentConnection, now: number): PendingSession | undefined {
      const session = byId.get(Buffer.from(sessionId).toString('hex'));
      if (session === undefined || session.connection !== connection) return undefined;
      if (expired(session, now)) {
        drop(session);
        return undefined;
      }
      remove(session);
      return session;
    },
    dropNode(nodeId: string): void {
      for (const session of byNode.get(nodeId) ?? []) drop(session);
    },
    dropThose(isOver: (session: PendingSession) => boolean): void {
      for (const session of byId.values()) if (isOver(session)) drop(session);
    },
    /** Drops sessions older than 10 s. */
    sweep(now: number): void {
      for (const session of byId.values()) {
        if (!expired(session, now)) return;
        drop(session);
      }
    },
    clear(): void {
      for (const session of byId.values()) drop(session);
    },
    get size(): number {
      return byId.size;
    },
  };
}
