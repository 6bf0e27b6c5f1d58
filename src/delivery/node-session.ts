/**
 * A session's place at delivery: takes its requests and reports, and offers it what changed. Sees to it that an offer
 * never overtakes an answer, and that nothing is offered before the first one.
 * Implements `NodeSession` of the port; `docs/contract/agent-protocol.md#configuration`.
 */
import type { Clock } from '../kernel/clock.js';
import type { Answerer } from './answer.js';
import { useUpRetry } from './answer.js';
import type { NewestSnapshots } from './newest.js';
import type { ConfigAnswer, NodeSession, PushSlot } from './port.js';
import { noteSent } from './session-registry.js';
import type { SessionState, SessionRegistry } from './session-registry.js';
import type { ApplyHistories } from './apply-history.js';
import { targetOf } from './target.js';
import type { ApplyReports } from './apply-reports.js';

export interface NodeSessionsDeps {
  readonly sessions: SessionRegistry;
  readonly histories: ApplyHistories;
  readonly applyReports: Pick<ApplyReports, 'report'>;
  readonly newest: NewestSnapshots;
  readonly clock: Clock;
  readonly answer: Answerer;
  generation(nodeId: string): number | undefined;
  mayPush(): boolean;
  /** The node's sessions lack something: serve them. */
  touch(nodeId: string): void;
}

export interface NodeSessions {
  open(nodeId: string, sessionId: string, slot: PushSlot): NodeSession;
  /** Offers the node's newest snapshot to those of its sessions that lack it; answers the bytes made for it. */
  serve(nodeId: string): Promise<number>;
  /** Offers made since the start. */
  offered(): number;
}

export function createNodeSessions(deps: NodeSessionsDeps): NodeSessions {
  const { sessions, histories } = deps;
  let offered = 0;

  const request = async (session: SessionState, configVersion: bigint, checksum: Uint8Array): Promise<ConfigAnswer> => {
    session.answering += 1;
    try {
      const answer = await deps.answer(session, configVersion, checksum);
      if (answer.kind === 'snapshot' || answer.kind === 'unchanged') session.opened = true;
      return answer;
    } finally {
      restWhenLeft(session);
      // Not before the caller has seen the answer: what was committed meanwhile comes after it, never before.
      setImmediate(() => {
        session.answering -= 1;
        const generation = deps.generation(session.nodeId) ?? 0;
        if (!session.closed && session.opened && session.considered < generation) deps.touch(session.nodeId);
      });
    }
  };

  /** The session may have ended while its standing was being loaded: nobody else would let go of it. */
  const restWhenLeft = (session: SessionState): void => {
    if (session.closed && !sessions.has(session.nodeId)) histories.rest(session.nodeId);
  };

  return {
    open(nodeId, sessionId, slot) {
      const session = sessions.add(nodeId, sessionId, slot);
      return {
        request: (configVersion, checksum) => request(session, configVersion, checksum),
        async report(outcome) {
          try {
            const record = await histories.load(nodeId);
            useUpRetry(session, record);
            await deps.applyReports.report(record, outcome);
          } finally {
            restWhenLeft(session);
          }
        },
        sent(push) {
          noteSent(session, push, deps.clock.now());
          const record = histories.peek(nodeId);
          if (record !== undefined && session.again === push.generation) useUpRetry(session, record);
        },
        close() {
          if (sessions.remove(session)) histories.rest(nodeId);
        },
      };
    },
    async serve(nodeId) {
      const generation = deps.generation(nodeId);
      if (generation === undefined || sessions.waitingFor(nodeId, generation).length === 0) return 0;
      const newest = await deps.newest.get(nodeId);
      const record = histories.peek(nodeId);
      if (newest.kind !== 'made' || record === undefined) return 0;
      if (!deps.mayPush()) {
        deps.touch(nodeId);
        return 0;
      }
      const push = newest.value;
      const target = targetOf(newest.stamp, record.history);
      for (const session of sessions.waitingFor(nodeId, push.generation)) {
        session.considered = push.generation;
        // Any other target is the agent's own doing and waits for its next request.
        if (target !== 'newest') continue;
        session.slot.offer(push);
        offered += 1;
      }
      return push.payload.length;
    },
    offered: () => offered,
  };
}
