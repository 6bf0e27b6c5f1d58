/**
 * One Control stream on which the kit plays the service: everything the agent sends, in order and with its time, and
 * whatever a scenario wants to send, including faults. `watch.ts` checks the rules that hold for every agent.
 */
import { Metadata, status, type ServerDuplexStream } from '@grpc/grpc-js';
import { maxFragmentBytes } from '../../src/channel/noise/fragmenter.js';
import type { NoiseSession } from '../../src/channel/noise/handshake.js';
import {
  ServicePayload,
  type SecureFrame,
  type SessionClose,
  type SessionGrant,
} from '../../src/gen/svc/control/v1/session.js';
import { readAgentPayload, type AgentMessage } from '../../src/transport/agent/agent-payload.js';
import { InboundFrames } from '../../src/transport/agent/frames.js';
import type { SentenceName } from './sentences.js';
import type { Verdicts } from './verdicts.js';

export type ServiceMessage = NonNullable<ServicePayload['payload']>;

export interface Said {
  /** Milliseconds, by `performance.now`. */
  readonly at: number;
  readonly message: AgentMessage;
}

/** An OpenSession that was granted. */
export interface Granted {
  readonly nodeId: string;
  readonly sessionId: Buffer;
  readonly noise: NoiseSession;
  readonly grant: SessionGrant;
  /** The connection: address and port of the agent's side. */
  readonly peer: string;
  readonly at: number;
}

export interface PlayedSession {
  readonly granted: Granted;
  readonly attachedAt: number;
  readonly said: readonly Said[];
  /** When the stream ended on this side; undefined while it is open. */
  readonly endedAt: number | undefined;
  /** Sends a payload in fragments of the largest size. */
  send(message: ServiceMessage): void;
  /** Sends an encoded `ServicePayload`. @param fragmentBytes the size of all fragments but the last */
  sendBytes(payload: Uint8Array, fragmentBytes?: number): void;
  /** Encrypts a plaintext with its fragment byte, and sends it, changed by `change`. @returns the frame */
  sendPlaintext(plaintext: Uint8Array, change?: (frame: SecureFrame) => SecureFrame): SecureFrame;
  /** Sends a frame unchanged. */
  sendFrame(frame: SecureFrame): void;
  /** Sends SessionClose under the session's keys, briefly waits for the agent's reaction, then sends the status. */
  close(close: Partial<SessionClose>, code: number): Promise<void>;
  /** Ends the stream with a bare status. */
  drop(code: number): void;
  /** Stops reading what the agent sends. */
  pause(): void;
  resume(): void;
}

interface SessionHooks {
  readonly verdicts: () => Verdicts;
  onSaid(message: AgentMessage, session: PlayedSession): void;
  /** Notifies waiting scenarios. */
  onChange(): void;
  /** How long the stream stays open after the agent's SessionClose. */
  endDelayMs(): number;
}

/** A message from the agent within this time after a SessionClose counts as an answer to it. */
const answerWindowMs = 250;
const none = Buffer.alloc(0);

const lastFragment = 0x00;
const moreFollow = 0x01;

/** @param first the agent's first frame, which named the session */
export function playSession(
  call: ServerDuplexStream<SecureFrame, SecureFrame>,
  granted: Granted,
  first: SecureFrame,
  hooks: SessionHooks,
): PlayedSession {
  const { noise, sessionId, nodeId } = granted;
  const inbound = new InboundFrames(noise.receive, sessionId);
  const said: Said[] = [];
  let endedAt: number | undefined;
  let closed = false;
  let expected = 0n;

  const over = (): void => {
    if (endedAt !== undefined) return;
    endedAt = performance.now();
    inbound.discard();
    noise.send.wipe();
    hooks.onChange();
  };
  const end = (code: number, details: string): void => {
    if (endedAt !== undefined) return;
    over();
    if (code === status.OK) call.end();
    else call.emit('error', { code, details, metadata: new Metadata() });
  };

  const take = (frame: SecureFrame): void => {
    if (endedAt !== undefined) return;
    const { check } = hooks.verdicts();
    if (expected > 0n) check('idOnFirstFrame', frame.sessionId.length === 0, `frame ${expected} carries a session_id`);
    if (!check('sequence', frame.sequence === expected, `frame ${expected} has sequence ${frame.sequence}`)) {
      return end(status.ABORTED, 'wrong sequence');
    }
    expected += 1n;
    const taken = inbound.takeFrame({ ...frame, sequence: Number(frame.sequence) });
    if (taken.kind === 'refused_frame') {
      const sentence: Partial<Record<typeof taken.failure, SentenceName>> = {
        bad_fragment: 'fragmentByte',
        payload_too_large: 'joined',
        foreign_session: 'idOnFirstFrame',
      };
      check(
        sentence[taken.failure] ?? 'ciphertext',
        false,
        `frame ${frame.sequence}: ${taken.failure.replaceAll('_', ' ')}`,
      );
      return end(status.ABORTED, taken.failure);
    }
    check('ciphertext', true, '');
    check('fragmentByte', true, '');
    if (taken.kind === 'fragment') return;
    const read = readAgentPayload(taken.bytes, nodeId);
    if (read.kind !== 'message') {
      const why = read.kind === 'empty' ? 'a payload without any known field' : read.why;
      check(sentenceOf(why), false, why);
      return;
    }
    const { message } = read;
    said.push({ at: performance.now(), message });
    if (message.$case === 'close')
      check('noAnswerToClose', !closed, 'the agent answered SessionClose with one of its own');
    hooks.onSaid(message, session);
    hooks.onChange();
    if (message.$case === 'close') setTimeout(() => end(status.OK, ''), hooks.endDelayMs()).unref();
  };

  const sendFrame = (frame: SecureFrame): void => {
    if (endedAt === undefined) call.write(frame);
  };
  const session: PlayedSession = {
    granted,
    attachedAt: performance.now(),
    said,
    get endedAt() {
      return endedAt;
    },
    send: (message) => session.sendBytes(ServicePayload.encode({ payload: message }).finish()),
    sendBytes(payload, fragmentBytes = maxFragmentBytes) {
      for (let from = 0; from === 0 || from < payload.length; from += fragmentBytes) {
        const isLast = from + fragmentBytes >= payload.length;
        const marker = Buffer.of(isLast ? lastFragment : moreFollow);
        session.sendPlaintext(Buffer.concat([marker, payload.subarray(from, from + fragmentBytes)]));
      }
    },
    sendPlaintext(plaintext, change = (frame) => frame) {
      const sequence = noise.send.nextSequence;
      const sealed = noise.send.encrypt(sequence, plaintext);
      const ciphertext = sealed.ok ? Buffer.from(sealed.value) : none;
      const frame = { sessionId: none, sequence: BigInt(sequence), ciphertext };
      sendFrame(change(frame));
      return frame;
    },
    sendFrame,
    async close(close, code) {
      closed = true;
      session.send({ $case: 'close', value: { reason: 0, message: '', retryAfterMs: 0, ...close } });
      await new Promise((resolve) => setTimeout(resolve, answerWindowMs));
      hooks.verdicts().check('noAnswerToClose', true, '');
      end(code, 'closed');
    },
    drop: (code) => end(code, 'dropped by the kit'),
    pause: () => void call.pause(),
    resume: () => void call.resume(),
  };

  call.on('error', over);
  call.on('cancelled', over);
  // A half-close is an end requested by the agent.
  call.on('end', () => setTimeout(() => end(status.OK, ''), hooks.endDelayMs()).unref());
  call.on('data', take);
  take(first);
  return session;
}

/** The sentence broken by a payload that the service would refuse. @param why in the words of `readAgentPayload` */
function sentenceOf(why: string): SentenceName {
  if (why.startsWith('node_id')) return 'ownNodeId';
  if (why.startsWith('errors: too many')) return 'errorsBound';
  if (/^(diagnostics|items|log): too many/.test(why)) return 'diagnosticsBound';
  if (why.includes('a text is longer')) return 'textBound';
  if (why.startsWith('hello.process_id')) return 'processId';
  return 'limits';
}
