/**
 * Makes this machine a node with a join token. However the process ends, it leaves an identity, or only the id of the
 * request, which the next try repeats. Implements `docs/contract/joining.md#the-machines-side`.
 */
import { formatEndpoint, type ControlEndpoint } from '../channel/reality/endpoint.js';
import { sleep } from '../kernel/background.js';
import { systemClock } from '../kernel/clock.js';
import { unreachable } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import { backoff } from '../kernel/retry.js';
import { agentVersion } from './agent.js';
import { join } from './control/join.js';
import { forgetRequest, requestPath, requestToJoin, writeIdentity, type Identity } from './state-directory.js';

/** The longest wait that the service may ask for. */
const retryAfterMaxMs = 5 * 60_000;

export interface JoinPlan {
  readonly token: string;
  readonly endpoint: ControlEndpoint;
  /** The name that the machine gives itself. */
  readonly name: string;
  readonly stateDir: string;
  /** How long it keeps trying while the service does not answer, in milliseconds. */
  readonly patienceMs: number;
  /** @param message why the last try failed */
  onRetry(message: string, waitMs: number): void;
}

export type Joining =
  | { readonly kind: 'joined'; readonly identity: Identity; readonly name: string }
  /** By the service; a sentence. */
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'unreached'; readonly message: string };

/** Joins; the identity is on the disk when this returns it. @throws StateError */
export async function joinMachine(plan: JoinPlan): Promise<Joining> {
  const { token, endpoint, name, stateDir, patienceMs, onRetry } = plan;
  const { requestId, isRepeated } = await requestToJoin(stateDir);
  const began = performance.now();
  for (let attempt = 0; ; attempt += 1) {
    const outcome = await join({ endpoint, token, name, requestId, agentVersion, clock: systemClock });
    switch (outcome.kind) {
      case 'joined': {
        const identity = {
          node_id: outcome.node_id,
          control_psk: outcome.control_psk,
          endpoint: formatEndpoint(endpoint),
        };
        await writeIdentity(stateDir, identity);
        await forgetRequest(stateDir);
        return { kind: 'joined', identity, name: outcome.node_name };
      }
      case 'unknown':
        return { kind: 'refused', message: outcome.message };
      case 'refused': {
        const anew = isRepeated ? `; without ${requestPath(stateDir)} it joins as another node` : '';
        return { kind: 'refused', message: `${outcome.message}${anew}` };
      }
      case 'later': {
        const asked = Math.min(outcome.retryAfterMs, retryAfterMaxMs);
        const waitMs = Math.round(Math.max(asked, backoff(limits.agentControl.reconnect, attempt)));
        if (performance.now() - began + waitMs > patienceMs) return { kind: 'unreached', message: outcome.message };
        onRetry(outcome.message, waitMs);
        await sleep(waitMs);
        break;
      }
      default:
        return unreachable(outcome);
    }
  }
}
