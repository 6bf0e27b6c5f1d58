/**
 * One attached Control stream: payloads in and out, as encrypted frames and fragments. The only payload that it
 * interprets is SessionClose. Implements the agent's side of `docs/contract/agent-protocol.md#control`.
 */
import type { ClientDuplexStream, StatusObject } from '@grpc/grpc-js';
import { Joiner, splitPayload } from '../../channel/noise/fragmenter.js';
import type { NoiseSession } from '../../channel/noise/handshake.js';
import { AgentPayload, ServicePayload, type SecureFrame, type SessionClose } from '../../gen/svc/control/v1/session.js';
import { withDeadline } from '../../kernel/background.js';
import { limits } from '../../kernel/limits.js';
import { wipe } from './opening.js';

export type ServiceMessage = Exclude<NonNullable<ServicePayload['payload']>, { readonly $case: 'close' }>;
export type AgentMessage = NonNullable<AgentPayload['payload']>;

/** Called with each payload except SessionClose and unknown ones. Must not throw. */
export type OnMessage = (message: ServiceMessage) => void;

export type StreamEnd =
  /** The service sent a SessionClose under the session's keys. */
  | { readonly kind: 'closed'; readonly close: SessionClose }
  /** Any other end, including a bare gRPC status. */
  | { readonly kind: 'lost'; readonly detail: string };

export interface ControlStream {
  /** Queues a payload. A full queue ends the stream; after the end, payloads are dropped. */
  send(message: AgentMessage): void;
  readonly ended: Promise<StreamEnd>;
  /** Sends SessionClose, half-closes, waits up to `waitMs` for the service to end the stream, then cancels it. */
  close(close: SessionClose, waitMs: number): Promise<void>;
  /** Cancels the stream at once, as lost. */
  cut(detail: string): void;
}

/** How many bytes may wait to be sent. */
const queueBytes = 16 * 1024 * 1024;
const empty = Buffer.alloc(0);

export function attachStream(
  call: ClientDuplexStream<SecureFrame, SecureFrame>,
  noise: NoiseSession,
  sessionId: Uint8Array,
  onMessage: OnMessage,
): ControlStream {
  const joiner = new Joiner(limits.agent.joinedOutBytes);
  let closing = false;
  let done = false;
  let completion: NodeJS.Timeout | undefined;
  let resolveEnd: (end: StreamEnd) => void = () => undefined;
  const ended = new Promise<StreamEnd>((resolve) => {
    resolveEnd = resolve;
  });

  const finish = (end: StreamEnd): void => {
    if (done) return;
    done = true;
    clearTimeout(completion);
    joiner.discard();
    wipe(noise);
    call.cancel();
    resolveEnd(end);
  };
  const lose = (detail: string): void => finish({ kind: 'lost', detail });
  const send = createSender(call, noise, sessionId, lose);

  const receive = (frame: SecureFrame): void => {
    if (done) return;
    if (frame.sessionId.length > 0 && !frame.sessionId.equals(sessionId))
      return lose('received a frame of another session');
    const plaintext = noise.receive.decrypt(frame.sequence, frame.ciphertext);
    if (!plaintext.ok) return lose(`frame refused: ${plaintext.error}`);
    const joined = joiner.push(plaintext.value);
    switch (joined.kind) {
      case 'more':
        completion ??= setTimeout(
          () => lose('a message from the service was not completed in time'),
          limits.agent.messageCompleteMs,
        );
        return;
      case 'refused':
        return lose(`fragment refused: ${joined.reason}`);
      case 'payload':
        clearTimeout(completion);
        completion = undefined;
        return deliver(joined.payload);
      default:
        joined satisfies never;
    }
  };

  const deliver = (bytes: Uint8Array): void => {
    let message: ServicePayload['payload'];
    try {
      message = ServicePayload.decode(bytes).payload;
    } catch {
      return lose('a payload from the service does not parse');
    }
    if (message === undefined) return;
    if (message.$case === 'close') return finish({ kind: 'closed', close: message.value });
    if (!closing) onMessage(message);
  };

  call.on('data', receive);
  // The status event follows and says the same; an error without a listener would be thrown.
  call.on('error', () => undefined);
  call.on('status', (status: StatusObject) => lose(`stream ended with gRPC status ${status.code}: ${status.details}`));

  return {
    send(message) {
      if (!done && !closing) send(message);
    },
    ended,
    async close(close, waitMs) {
      if (!closing && !done) {
        closing = true;
        send({ $case: 'close', value: close });
        call.end();
      }
      await withDeadline(ended, waitMs);
      lose('closed by the agent');
    },
    cut: lose,
  };
}

/**
 * Returns a function that sends a payload. Its frames wait in the call for as long as the service's window is closed.
 * @param lose called when too much waits there
 */
function createSender(
  call: ClientDuplexStream<SecureFrame, SecureFrame>,
  noise: NoiseSession,
  sessionId: Uint8Array,
  lose: (detail: string) => void,
): (message: AgentMessage) => void {
  let attached = false;
  let queuedBytes = 0;
  return (message) => {
    const bytes = AgentPayload.encode({ payload: message }).finish();
    if (queuedBytes + bytes.length > queueBytes) return lose('the send queue is full: the service does not read');
    for (const plaintext of splitPayload(bytes)) {
      const sequence = noise.send.nextSequence;
      const encrypted = noise.send.encrypt(sequence, plaintext);
      if (!encrypted.ok) return lose(`encryption: ${encrypted.error}`);
      const frame = {
        sessionId: attached ? empty : Buffer.from(sessionId),
        sequence: BigInt(sequence),
        ciphertext: Buffer.from(encrypted.value),
      };
      attached = true;
      queuedBytes += plaintext.length;
      call.write(frame, () => (queuedBytes -= plaintext.length));
    }
  };
}
