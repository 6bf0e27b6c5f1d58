/**
 * The PSKs that authenticate a node or a join token, and how many of them a handshake tries, so that its duration
 * reveals nothing about any one node. Implements `docs/contract/rollouts.md#guided-rotation`.
 */
import type { Fleet } from '../domain/fleet/fleet.js';
import { hasExpired } from '../domain/join-token/join-token.js';
import { acceptedPsks } from '../domain/node/psk.js';
import { isServedKey } from '../domain/service/served-keys.js';
import type { Clock } from '../kernel/clock.js';
import { joinTokenIn } from '../kernel/ids.js';
import type { AcceptedPsk, Delivery } from './port.js';

export function createAcceptedPsks(fleet: () => Fleet, clock: Pick<Clock, 'now'>): Pick<Delivery, 'psks' | 'pskTries'> {
  /** The expiry of the last candidate, as of a revision. */
  let last = { revision: -1, expiresAt: 0 };

  function ofJoinToken(id: string): readonly AcceptedPsk[] {
    const { tables, singletons } = fleet();
    const token = tables.join_token.get(id);
    const isAccepted =
      token !== undefined &&
      !hasExpired(token, clock.now()) &&
      isServedKey(singletons.identity.value, token.service_public);
    if (!isAccepted || token.verifier === null) return [];
    const { verifier, service_public } = token;
    return [{ fingerprint: '', verifier, service_public, isCandidate: false }];
  }

  return {
    psks(nodeId) {
      const joining = joinTokenIn(nodeId);
      if (joining !== undefined) return ofJoinToken(joining);
      const { tables, singletons } = fleet();
      const node = tables.node.get(nodeId);
      if (node === undefined) return [];
      return acceptedPsks(singletons.identity.value, node, clock.now()).map(
        ({ fingerprint, verifier, service_public }) => ({
          fingerprint,
          verifier,
          service_public,
          isCandidate: fingerprint !== node.psk?.fingerprint,
        }),
      );
    },
    pskTries() {
      const { candidates, revision } = fleet();
      if (candidates.size === 0) return 1;
      if (last.revision !== revision.value) {
        let expiresAt = 0;
        for (const at of candidates.values()) expiresAt = Math.max(expiresAt, Date.parse(at));
        last = { revision: revision.value, expiresAt };
      }
      return last.expiresAt > clock.now() ? 2 : 1;
    },
  };
}
