/**
 * The gRPC channel to the service. Its sessions are open but not attached yet: the handshake is in `opening.ts`, the
 * Control stream in `stream.ts`, and `session-loop.ts` decides when to connect. Implements the agent's side of
 * `docs/contract/agent-protocol.md#opensession`.
 */
import { Metadata, credentials, type ServiceError as GrpcError } from '@grpc/grpc-js';
import { SecureAgentServiceClient } from '../../gen/svc/control/v1/secure_agent_service.js';
import type { OpenSessionRequest, OpenSessionResponse, SessionGrant } from '../../gen/svc/control/v1/session.js';
import type { Clock } from '../../kernel/clock.js';
import { GrpcStatus } from '../../kernel/errors.js';
import { formatHostPort } from '../../kernel/host-port.js';
import { limits } from '../../kernel/limits.js';
import { err, ok, type Result } from '../../kernel/result.js';
import type { AgentKeys } from '../../channel/noise/control-psk.js';
import type { ClockOffset } from '../diagnosis/diagnose.js';
import { realityCredentials } from '../reality/credentials.js';
import type { ControlEndpoint } from '../../channel/reality/endpoint.js';
import { beginOpening, wipe, type Identity, type Opened, type OpenRefusal } from './opening.js';
import { attachStream, type ControlStream, type OnMessage } from './stream.js';

/** How long OpenSession may take. */
export const openTimeoutMs = 10_000;
/**
 * How many bytes may be in flight from the service. With HTTP/2's initial 64 KiB, a snapshot of 16 MiB would take 256
 * round trips, which exceeds a message's 30 seconds where a round trip takes over 120 ms.
 */
const windowBytes = 1024 * 1024;
const keepaliveMs = 30_000;
const keepaliveTimeoutMs = 10_000;

/** Service time minus local time. Outlives connections, so that a skewed clock costs only one refusal in total. */
interface OfferOffset {
  milliseconds: number;
}

interface ControlClientOptions extends Identity {
  readonly endpoint: ControlEndpoint;
  readonly clock: Clock;
  readonly offset: OfferOffset;
}

export interface OpenedSession {
  readonly grant: SessionGrant;
  readonly clockOffset: ClockOffset;
  /** Attaches the session to a Control stream. Called at most once. */
  attach(onMessage: OnMessage): ControlStream;
  /** Wipes the keys of a session that will not be attached. */
  discard(): void;
}

export interface ControlClient {
  /** Opens a session, with one retry if the clocks differ. Ends early if the signal aborts. @param keys by default the client's */
  open(signal: AbortSignal, keys?: AgentKeys): Promise<Result<OpenedSession, OpenRefusal>>;
  close(): void;
}

/** One client is one HTTP/2 connection, because a session attaches only on the connection that opened it. */
export function createControlClient(options: ControlClientOptions): ControlClient {
  const { clock, offset } = options;
  const { reality } = options.endpoint;
  const channel = reality === undefined ? credentials.createInsecure() : realityCredentials(reality, clock);
  const client = new SecureAgentServiceClient(formatHostPort(options.endpoint), channel, {
    // Many agents in one process must not share a connection.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_http_proxy': 0,
    'grpc.service_config_disable_resolution': 1,
    // A retried message 1 would be refused as a replay.
    'grpc.enable_retries': 0,
    'grpc.max_receive_message_length': limits.agent.grpcMessageBytes,
    'grpc-node.flow_control_window': windowBytes,
    'grpc.keepalive_time_ms': keepaliveMs,
    'grpc.keepalive_timeout_ms': keepaliveTimeoutMs,
  });
  const call = (request: OpenSessionRequest, signal: AbortSignal): Promise<OpenSessionResponse | GrpcError> =>
    new Promise((resolve) => {
      const deadline = Date.now() + openTimeoutMs;
      const running = client.openSession(request, new Metadata(), { deadline }, (error, response) => {
        signal.removeEventListener('abort', cancel);
        resolve(error ?? response);
      });
      const cancel = (): void => running.cancel();
      signal.addEventListener('abort', cancel, { once: true });
    });

  const attempt = async (
    signal: AbortSignal,
    keys: AgentKeys,
  ): Promise<Result<OpenedSession, OpenRefusal & { skewed?: true }>> => {
    if (signal.aborted) return err({ status: GrpcStatus.ABORTED, detail: 'the agent is stopping' });
    const opening = beginOpening({ ...options, keys }, clock.now() + offset.milliseconds);
    if (!opening.ok) return opening;
    const began = clock.monotonic();
    const answer = await call(opening.value.request, signal);
    if (!(answer instanceof Error)) {
      const finished = opening.value.finish(answer);
      return finished.ok ? ok(openedSession(finished.value, clock.monotonic() - began)) : finished;
    }
    opening.value.discard();
    const serverTime = serverTimeOf(answer);
    if (answer.code !== GrpcStatus.FAILED_PRECONDITION || serverTime === undefined) {
      return err({ status: answer.code, detail: answer.details });
    }
    offset.milliseconds = serverTime - clock.now();
    return err({ status: answer.code, detail: "the agent's clock differs from the service's", skewed: true });
  };

  /** @param tookMs how long the call took; the service read its clock at some point during it */
  const openedSession = ({ noise, sessionId, grant }: Opened, tookMs: number): OpenedSession => ({
    grant,
    clockOffset: {
      ms: Number(grant.serverTimeMs) - (clock.now() - tookMs / 2),
      withinMs: tookMs / 2,
      measuredAt: clock.monotonic(),
    },
    attach: (onMessage) => attachStream(client.control(), noise, sessionId, onMessage),
    discard: () => wipe(noise),
  });

  return {
    async open(signal, keys = options.keys) {
      const first = await attempt(signal, keys);
      if (first.ok || first.error.skewed === undefined) return first;
      return attempt(signal, keys);
    },
    close() {
      client.close();
    },
  };
}

/** Reads the trailer of a refusal for clock skew: milliseconds since the Unix epoch, in decimal. */
function serverTimeOf(error: GrpcError): number | undefined {
  const [value] = error.metadata?.get('server-time-ms') ?? [];
  return typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}
