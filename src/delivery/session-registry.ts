/**
 * The open node sessions of this instance, and what each has been sent. `target.ts` has the rules, `answer.ts` answers requests.
 * Implements `docs/contract/agent-protocol.md#configuration`.
 */
import type { Clock } from '../kernel/clock.js';
import type { PushSlot, SnapshotPush } from './port.js';
import type { Named, Stamp } from './target.js';
import type { Offers } from './time-to-applied.js';

/** A report that a node runs a snapshot. */
export interface Applied {
  readonly stamp: Stamp;
  readonly named: Named;
  /** The snapshot, if `named` is `pushed`. */
  readonly pushed?: SnapshotPush | undefined;
  readonly durationMs: number;
  /** Arrival, monotonic milliseconds. */
  readonly at: number;
}

export interface SessionState {
  readonly nodeId: string;
  readonly sessionId: string;
  readonly slot: PushSlot;
  /** Its first ConfigRequest is answered, so pushes may be offered. */
  opened: boolean;
  /** Requests being answered; meanwhile nothing is offered, so that no offer overtakes an answer. */
  answering: number;
  /** The newest generation considered for it, whether or not it was offered. */
  considered: number;
  pushed: { readonly generation: number; readonly at: number } | undefined;
  /** The newest offer that the agent has not taken, and since when it has taken nothing, monotonic. */
  unsent: { readonly generation: number; readonly since: number } | undefined;
  /** The newest offer or answer on which the agent has not reported: for a held node, it stays the target. */
  unreported: SnapshotPush | undefined;
  /** Offers without an answer yet, to measure the time to applied. */
  readonly offers: Offers;
  /** Tells the agent that a generation is confirmed; undefined for an agent without the feature. */
  readonly confirm: ((generation: number) => void) | undefined;
  /** The applied generation that is confirmed once the agent is seen again; undefined when there is none. */
  unconfirmed: Applied | undefined;
  closed: boolean;
  /** A newer session of its node has said hello: its reports no longer count. */
  superseded: boolean;
}

export type SessionRegistry = ReturnType<typeof createSessionRegistry>;

export function createSessionRegistry() {
  const byNode = new Map<string, Set<SessionState>>();
  let size = 0;
  return {
    add(nodeId: string, sessionId: string, slot: PushSlot, confirm?: SessionState['confirm']): SessionState {
      const session: SessionState = {
        nodeId,
        sessionId,
        slot,
        opened: false,
        answering: 0,
        considered: 0,
        pushed: undefined,
        unsent: undefined,
        unreported: undefined,
        offers: [],
        confirm,
        unconfirmed: undefined,
        closed: false,
        superseded: false,
      };
      const sessions = byNode.get(nodeId);
      for (const older of sessions ?? []) older.superseded = true;
      if (sessions === undefined) byNode.set(nodeId, new Set([session]));
      else sessions.add(session);
      size += 1;
      return session;
    },
    /** @returns true when it was the node's last session */
    remove(session: SessionState): boolean {
      if (session.closed) return false;
      session.closed = true;
      size -= 1;
      const sessions = byNode.get(session.nodeId);
      sessions?.delete(session);
      if (sessions?.size !== 0) return false;
      byNode.delete(session.nodeId);
      return true;
    },
    has: (nodeId: string): boolean => byNode.has(nodeId),
    /** The sessions to which a push of this generation may be offered. */
    waitingFor(nodeId: string, generation: number): readonly SessionState[] {
      return [...(byNode.get(nodeId) ?? [])].filter(
        ({ opened, answering, considered }) => opened && answering === 0 && considered < generation,
      );
    },
    /** Reconsiders the node's newest generation for its sessions. */
    reconsider(nodeId: string): void {
      for (const session of byNode.get(nodeId) ?? []) session.considered = 0;
    },
    /** Whether a session of the node has this generation to report on. */
    owes: (nodeId: string, generation: number): boolean =>
      [...(byNode.get(nodeId) ?? [])].some(({ unreported }) => unreported?.generation === generation),
    pushed(nodeId: string): SessionState['pushed'] {
      const all = [...(byNode.get(nodeId) ?? [])].flatMap(({ pushed }) => (pushed === undefined ? [] : [pushed]));
      return all.sort((a, b) => b.generation - a.generation)[0];
    },
    /** Monotonic time since which every session of the node has an untaken offer; undefined if one has none, or without sessions. */
    unsentSince(nodeId: string): number | undefined {
      let latest: number | undefined;
      for (const { unsent } of byNode.get(nodeId) ?? []) {
        if (unsent === undefined) return undefined;
        latest = Math.max(latest ?? unsent.since, unsent.since);
      }
      return latest;
    },
    get size(): number {
      return size;
    },
  };
}

/** @param now monotonic milliseconds */
export function noteOffered(session: SessionState, push: SnapshotPush, now: number): void {
  session.unsent = { generation: push.generation, since: session.unsent?.since ?? now };
  session.unreported = push;
}

/** Notes that a push was sent completely. */
export function noteSent(
  session: SessionState,
  push: SnapshotPush,
  { now, monotonic }: Pick<Clock, 'now' | 'monotonic'>,
): void {
  const { unsent } = session;
  if (unsent !== undefined) {
    const { generation } = unsent;
    session.unsent = generation > push.generation ? { generation, since: monotonic() } : undefined;
  }
  if ((session.pushed?.generation ?? 0) < push.generation) session.pushed = { generation: push.generation, at: now() };
}
