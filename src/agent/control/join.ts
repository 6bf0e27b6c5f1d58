/**
 * Joins over the control protocol: one session under the id of a join token, in which the service makes this machine a
 * node. Stores nothing: the caller stores the id of the request beforehand, and the PSK afterwards. Implements the
 * agent's side of `docs/contract/joining.md#join-tokens`.
 */
import { agentKeysFrom } from '../../channel/noise/control-psk.js';
import { joinKeysFrom } from '../../channel/noise/join-token.js';
import type { ControlEndpoint } from '../../channel/reality/endpoint.js';
import { SessionCloseReason, type JoinGrant } from '../../gen/svc/control/v1/session.js';
import { timedOut, withDeadline } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { GrpcStatus } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import { createControlClient } from './client.js';
import type { StreamEnd } from './stream.js';

export interface JoinOptions {
  readonly endpoint: ControlEndpoint;
  /** `svcjoin1_…` */
  readonly token: string;
  /** The name that the machine gives itself. */
  readonly name: string;
  /** 16 random bytes, on the disk before this is called, and the same in each try. */
  readonly requestId: Uint8Array;
  readonly agentVersion: string;
  readonly clock: Clock;
}

export type JoinOutcome =
  | { readonly kind: 'joined'; readonly node_id: string; readonly node_name: string; readonly control_psk: string }
  /** Final; the message comes from the service or from this program. */
  | { readonly kind: 'refused'; readonly message: string }
  /**
   * Nobody knows the token: it is wrong, deleted or expired. Not authenticated, so a service that is being restored, or somebody
   * on the way, may say so too.
   */
  | { readonly kind: 'unknown'; readonly message: string }
  /** It may work later. The node may have been made: repeat the same request. */
  | { readonly kind: 'later'; readonly message: string; readonly retryAfterMs: number };

const later = (message: string, retryAfterMs = 0): JoinOutcome => ({ kind: 'later', message, retryAfterMs });

/** How long the service may take to answer a JoinRequest. */
const answerMs = 30_000;

/** Tries once, in bounded time. Never rejects. */
export async function join(options: JoinOptions): Promise<JoinOutcome> {
  const identity = joinKeysFrom(options.token);
  if (!identity.ok) return { kind: 'refused', message: identity.error };
  const { endpoint, agentVersion, clock } = options;
  const client = createControlClient({ ...identity.value, endpoint, agentVersion, clock, offset: { milliseconds: 0 } });
  try {
    const opened = await client.open(new AbortController().signal);
    if (!opened.ok) {
      const { status, detail } = opened.error;
      if (status !== GrpcStatus.UNAUTHENTICATED) return later(`session refused with gRPC status ${status}: ${detail}`);
      return { kind: 'unknown', message: 'the service does not know the join token: it is wrong, deleted or expired' };
    }
    let grant: JoinGrant | undefined;
    const stream = opened.value.attach((message) => {
      if (message.$case !== 'joinGrant') return;
      grant = message.value;
      void withDeadline(stream.ended, limits.agentControl.closeWaitMs).then(() => stream.cut('joined'));
    });
    stream.send({ $case: 'join', value: { requestId: Buffer.from(options.requestId), name: options.name } });
    const end = await withDeadline(stream.ended, answerMs);
    if (grant !== undefined) return granted(grant);
    if (end !== timedOut) return withoutGrant(end);
    stream.cut('no answer');
    return later('the service did not answer in time');
  } finally {
    client.close();
  }
}

function granted({ nodeId: node_id, nodeName: node_name, controlPsk: control_psk }: JoinGrant): JoinOutcome {
  if (node_id === '' || !agentKeysFrom(control_psk).ok)
    return later('the service gave no PSK that this agent can read');
  return { kind: 'joined', node_id, node_name, control_psk };
}

function withoutGrant(end: StreamEnd): JoinOutcome {
  if (end.kind === 'lost') return later(end.detail);
  const { reason, message, retryAfterMs } = end.close;
  const isFinal = reason === SessionCloseReason.REVOKED || reason === SessionCloseReason.PROTOCOL_ERROR;
  if (isFinal) return { kind: 'refused', message };
  return later(`the service ended the session: ${message}`, retryAfterMs);
}
