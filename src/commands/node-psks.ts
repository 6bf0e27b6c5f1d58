/**
 * Handlers of PSKs and of the identity that they carry: make and seal them. The rules are in `domain/node` and
 * `domain/service-identity`. Implements `docs/contract/rollouts.md#guided-rotation`.
 */
import type { Fleet } from '../domain/fleet/fleet.js';
import type { FleetCommand } from '../domain/fleet/resources.js';
import type { IssuedPsk } from '../domain/node/node.js';
import { timestamp, type Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import type { Keyring } from '../security/keyring.js';
import { issueControlPsk, sealVerifier } from '../security/psk.js';
import { newServiceKey, type ServiceKeys } from '../security/service-keys.js';
import type { CommandHandlers } from './handlers-port.js';
import type { Gateway } from './port.js';
import { present } from './resources.js';
import { tuning } from './tuning.js';

export interface PskMaker {
  readonly keyring: Keyring;
  readonly serviceKeys: Pick<ServiceKeys, 'newest'>;
}

export interface NewPsk {
  readonly controlPsk: string;
  readonly psk: IssuedPsk;
}

/** A new PSK for a node, and the verifier for the log. */
export function issuePsk({ keyring, serviceKeys }: PskMaker, nodeId: string): NewPsk {
  const { publicKey, named } = serviceKeys.newest();
  const issued = issueControlPsk(publicKey);
  const verifier = sealVerifier(keyring, issued.verifier, nodeId);
  issued.verifier.psk.fill(0);
  return { controlPsk: issued.controlPsk, psk: { fingerprint: issued.fingerprint, verifier, ...named } };
}

/** Makes a secret again if the identity was rotated before the secret's command was decided. */
export async function underNewestKey<R>(attempt: () => Promise<R>): Promise<R> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      const stale = error instanceof ServiceError && error.code === 'precondition_failed';
      if (!stale || tries >= tuning.staleAttempts) throw error;
    }
  }
}

interface PskHandlerOptions extends PskMaker {
  readonly gateway: Gateway<Fleet, FleetCommand>;
  readonly clock: Pick<Clock, 'now'>;
}

const dayMs = 86_400_000;

export function createPskHandlers(
  options: PskHandlerOptions,
): Pick<CommandHandlers['nodes'], 'issuePsk' | 'issueCandidate' | 'dropCandidate'> {
  const { gateway, clock } = options;
  return {
    issuePsk: (context, id) =>
      underNewestKey(() => {
        const { controlPsk, psk } = issuePsk(options, id);
        const { fingerprint } = psk;
        return gateway.execute({ type: 'IssueNodePsk', id, ...psk }, context, () => ({ controlPsk, fingerprint }));
      }),
    issueCandidate: (context, id, days) =>
      underNewestKey(() => {
        const { controlPsk, psk } = issuePsk(options, id);
        const expires_at = timestamp(clock.now() + days * dayMs);
        return gateway.execute({ type: 'IssueNodePskCandidate', id, ...psk, expires_at }, context, (fleet) => ({
          controlPsk,
          node: present(fleet.tables.node.get(id)),
        }));
      }),
    dropCandidate: (context, id, ifMatch) =>
      gateway.execute({ type: 'DropNodePskCandidate', id, ifMatch, now: clock.now() }, context, () => undefined),
  };
}

/**
 * @returns a function: whether the PSK is the node's from now on; false if it is no longer a candidate. Rejects when
 *   the agent may try again.
 */
export function createCandidateProof({
  gateway,
  clock,
}: Pick<PskHandlerOptions, 'gateway' | 'clock'>): (
  nodeId: string,
  fingerprint: string,
  sessionId: string,
) => Promise<boolean> {
  return async (id, fingerprint, sessionId) => {
    const actor = { type: 'agent', id, name: id } as const;
    const command = { type: 'ProveNodePskCandidate', id, fingerprint, now: clock.now() } as const;
    try {
      await gateway.execute(command, { actor, requestId: sessionId }, () => undefined);
      return true;
    } catch (error) {
      if (error instanceof ServiceError && (error.code === 'conflict' || error.code === 'not_found')) return false;
      throw error;
    }
  };
}

export function createServiceIdentityHandlers({
  gateway,
  keyring,
  serviceKeys,
  clock,
}: PskHandlerOptions & { readonly serviceKeys: Pick<ServiceKeys, 'first'> }): CommandHandlers['serviceIdentity'] {
  return {
    rotate: (context) =>
      gateway.execute({ type: 'RotateServiceIdentity', ...newServiceKey(keyring) }, context, () => undefined),
    retire(context, force) {
      const command = { type: 'RetireServiceIdentity', force, now: clock.now(), first: serviceKeys.first } as const;
      return gateway.execute(command, context, () => undefined);
    },
  };
}
