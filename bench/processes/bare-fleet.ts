/**
 * A separate process with the cheap connections of light agents to the bare gRPC server: the same calls and bytes as a
 * session, without handshake and encryption.
 */
import { defaultWindow, openConnection, type Call } from '../../scripts/simulate/light/connection.js';
import { connectingAtOnce, createTurns } from '../../scripts/simulate/light/turns.js';
import { answerParent } from '../child.js';
import { sharedClock } from '../figures.js';
import { bareService, kinds } from '../floors/bare-grpc.js';
import type { AgentEvent } from './agents.js';

export interface StartBare {
  readonly port: number;
  /** Numbers of the agents: from `first` on, `count` of them. */
  readonly first: number;
  readonly count: number;
  /** Bytes of a snapshot. */
  readonly snapshotBytes: number;
}

export interface BareHeartbeats {
  readonly everyMs: number;
  readonly bytes: number;
}

const streams: Call[] = [];
const timers: NodeJS.Timeout[] = [];
let configured = 0;

function message(kind: number, bytes: number, value: number): Buffer {
  const made = Buffer.alloc(bytes, kind);
  made.writeUInt32BE(value, 1);
  return made;
}

const ignore = (): void => undefined;

function connectOne({ port, snapshotBytes }: StartBare, index: number, done: () => void): void {
  const connection = openConnection({
    endpoint: { host: '127.0.0.1', port },
    windowBytes: defaultWindow,
    onClosed: done,
  });
  const opened = (): void => {
    let first = true;
    const stream = connection.call(bareService.control.path, {
      onMessage(bytes) {
        if (bytes[0] !== kinds.push) return;
        stream.send(message(kinds.applied, 100, index));
        if (!first) return send({ agent: String(index), generation: 0, at: sharedClock() });
        first = false;
        configured += 1;
        done();
      },
      onEnd: ignore,
    });
    stream.send(message(kinds.hello, 150, index));
    stream.send(message(kinds.request, 60, snapshotBytes));
    streams.push(stream);
  };
  const open = connection.call(bareService.open.path, { onMessage: ignore, onEnd: opened });
  open.send(Buffer.alloc(180, 5));
  open.halfClose();
}

const { send } = answerParent<AgentEvent>({
  start(bare: StartBare) {
    const turn = createTurns(connectingAtOnce);
    for (let index = bare.first; index < bare.first + bare.count; index += 1) {
      turn((done) => connectOne(bare, index, done));
    }
  },
  configured: () => configured,
  heartbeats({ everyMs, bytes }: BareHeartbeats) {
    const beat = Buffer.alloc(bytes, kinds.heartbeat);
    for (const stream of streams) {
      const first = setTimeout(() => {
        stream.send(beat);
        timers.push(setInterval(() => stream.send(beat), everyMs));
      }, Math.random() * everyMs);
      timers.push(first);
    }
  },
  quiet() {
    for (const timer of timers.splice(0)) clearTimeout(timer);
  },
});
