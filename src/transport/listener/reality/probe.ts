/**
 * Learns what the target sends by itself right after a handshake, such as tickets: the lengths of those records. An
 * agent then gets records of the same lengths. The target sees an ordinary client. Implements
 * `docs/reality.md#records-after-the-handshake`.
 */
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { Duplex } from 'node:stream';
import type { Socket } from 'node:net';
import { sleep, timedOut, withDeadline } from '../../../kernel/background.js';
import { recordType } from '../../../channel/tls/codes.js';
import { createRecordReader } from '../../../channel/tls/record-reader.js';
import type { Suite } from '../../../channel/tls/suites.js';
import { canImitate } from './handshake.js';
import type { Target } from './target.js';
import { createTargetFlightReader } from './target-flight.js';
import { tuning } from './tuning.js';

/** A client's ALPN offer affects what a target sends: nothing, HTTP/1.1 alone, or HTTP/2 as well. */
export type OfferedProtocols = 'none' | 'http/1.1' | 'h2';

const offers: { readonly [offered in OfferedProtocols]: readonly string[] | undefined } = {
  none: undefined,
  'http/1.1': ['http/1.1'],
  h2: ['h2', 'http/1.1'],
};

const suites = {
  /** In the order of browsers: Node itself offers AES-256 first, and most targets take the first offer. */
  any: 'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256',
  sha256: 'TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256',
  sha384: 'TLS_AES_256_GCM_SHA384',
} as const;

export interface Probed {
  /** The hash of the suite that the target chose: a ticket contains a secret of its length. */
  readonly hash: Suite['hash'];
  /** Of whole records, in order. */
  readonly lengths: readonly number[];
}

export function offeredBy(protocols: readonly string[]): OfferedProtocols {
  if (protocols.includes('h2')) return 'h2';
  return protocols.length > 0 ? 'http/1.1' : 'none';
}

/** Why a target serves no client: it is unreachable, or answers in a way that cannot be imitated. */
export type TargetTrouble = 'unreachable' | 'unusable';

interface Visit {
  readonly serverName: string;
  readonly protocols: OfferedProtocols;
  /** The hash of the offered suites; undefined for all suites, in the order of browsers. */
  readonly hash: Suite['hash'] | undefined;
  /** How long the target is watched after the handshake. */
  readonly watchMs: number;
  /** Stops watching the target; closing its connections ends any earlier step. */
  readonly signal: AbortSignal;
}

/** @param answered called as soon as the target has answered in a way that can be imitated */
export async function probeTarget(
  target: Target,
  { serverName, protocols: offered, hash, watchMs, signal }: Visit,
  answered: () => void,
): Promise<Probed | TargetTrouble> {
  const socket = await target.dial();
  if (socket === undefined) return 'unreachable';
  const watched = watch(socket);
  const protocols = offers[offered];
  const tls = connectTls({
    socket: watched.stream,
    servername: serverName,
    minVersion: 'TLSv1.3',
    ciphers: suites[hash ?? 'any'],
    // Every REALITY client offers this.
    ecdhCurve: 'X25519',
    // The probe talks to the target, whoever that is, so it sends nothing secret.
    rejectUnauthorized: false,
    ...(protocols === undefined ? {} : { ALPNProtocols: [...protocols] }),
  });
  try {
    const connected = await withDeadline(secured(tls), tuning.probeHandshakeMs);
    if (connected === timedOut || !connected || !watched.canImitate()) return 'unusable';
    answered();
    const chosen = tls.getCipher().standardName.endsWith('SHA384') ? 'sha384' : 'sha256';
    await sleep(watchMs, signal);
    return { hash: chosen, lengths: watched.lengths() };
  } finally {
    tls.destroy();
    socket.destroy();
  }
}

function secured(tls: TLSSocket): Promise<boolean> {
  return new Promise((resolve) => {
    tls.once('secureConnect', () => resolve(true));
    tls.on('error', () => resolve(false));
    tls.once('close', () => resolve(false));
    // Only the length of the target's messages matters.
    tls.resume();
  });
}

/** Counts the records that arrive after the client has changed its keys, which it does with its Finished. */
function watch(socket: Socket): { readonly stream: Duplex; canImitate(): boolean; lengths(): readonly number[] } {
  const reader = createTargetFlightReader();
  let flight: ReturnType<typeof reader.push> = 'incomplete';
  const incoming = createRecordReader();
  const outgoing = createRecordReader();
  const lengths: number[] = [];
  let finished = false;
  const noteOutgoing = (bytes: Buffer): void => {
    if (finished) return;
    outgoing.push(bytes);
    for (let record = outgoing.next(); typeof record === 'object'; record = outgoing.next())
      if (record.type === recordType.changeCipherSpec) finished = true;
  };
  const noteIncoming = (bytes: Buffer): void => {
    if (flight === 'incomplete') flight = reader.push(bytes);
    incoming.push(bytes);
    for (let record = incoming.next(); typeof record === 'object'; record = incoming.next())
      if (finished && lengths.length < tuning.recordsAfterFlight) lengths.push(record.bytes.length);
  };
  const stream = new Duplex({
    read: () => void socket.resume(),
    write(chunk: Buffer, _encoding, done) {
      noteOutgoing(chunk);
      socket.write(chunk, done);
    },
    final: (done) => void socket.end(() => done()),
    destroy(error, done) {
      socket.destroy();
      done(error);
    },
  });
  socket.on('data', (bytes: Buffer) => {
    noteIncoming(bytes);
    if (!stream.push(bytes)) socket.pause();
  });
  socket.on('end', () => stream.push(null));
  socket.on('error', (error) => stream.destroy(error));
  socket.on('close', () => stream.destroy());
  return { stream, canImitate: () => typeof flight === 'object' && canImitate(flight), lengths: () => lengths };
}
