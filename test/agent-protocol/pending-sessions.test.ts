/** Sessions between OpenSession and their Control stream (`docs/contract/agent-protocol.md#opensession`). */
import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { CipherState } from '../../src/channel/noise/cipher-state.js';
import {
  createPendingTable,
  type PendingSession,
  type PendingTable,
} from '../../src/transport/agent/admission/pending-table.js';
import type { AgentConnection } from '../../src/transport/listener/connection.js';

interface TestConnection extends AgentConnection {
  close(): void;
  readonly sessions: () => number;
  readonly listeners: () => number;
}

function connection(): TestConnection {
  const listeners: (() => void)[] = [];
  let sessions = 0;
  return {
    sessionOpened: () => (sessions += 1),
    sessionEnded: () => (sessions -= 1),
    onClose: (listener: () => void) => void listeners.push(listener),
    close: () => listeners.forEach((listener) => listener()),
    sessions: () => sessions,
    listeners: () => listeners.length,
  } as unknown as TestConnection;
}

let freed: number;
let table: PendingTable;
beforeEach(() => {
  freed = 0;
  table = createPendingTable(() => (freed += 1));
});

function open(nodeId: string, on: AgentConnection, openedAt = 0): PendingSession {
  const sessionId = randomBytes(16);
  const session: PendingSession = {
    nodeId,
    sessionId,
    id: sessionId.toString('hex'),
    psk: { fingerprint: 'SHA256:x', isCandidate: false },
    connection: on,
    noise: {
      handshakeHash: randomBytes(32),
      send: new CipherState(Uint8Array.from(randomBytes(32))),
      receive: new CipherState(Uint8Array.from(randomBytes(32))),
    },
    openedAt,
    intervals: { heartbeatSecs: 10, metricsSecs: 60, offlineAfterMs: 30_000 },
  };
  table.add(session);
  return session;
}
/** Of the keys of both directions; asking changes nothing. */
const isWiped = ({ noise }: PendingSession): readonly boolean[] =>
  [noise.send.encrypt(-1, new Uint8Array(1)), noise.receive.decrypt(-1, new Uint8Array(17))].map(
    (result) => !result.ok && result.error === 'finished',
  );
const wiped = [true, true];

describe('a pending session', () => {
  test('is taken once, by its id, from the connection that opened it, with its keys', () => {
    const [own, other] = [connection(), connection()];
    const session = open('n1', own);
    expect(own.sessions()).toBe(1);
    expect(table.take(session.sessionId, other, 0)).toBeUndefined();
    expect(table.take(randomBytes(16), own, 0)).toBeUndefined();
    expect([table.size, freed]).toEqual([1, 0]);
    expect(table.take(session.sessionId, own, 0)).toBe(session);
    expect(isWiped(session)).toEqual([false, false]);
    expect([table.size, freed, own.sessions()]).toEqual([0, 1, 0]);
    expect(table.take(session.sessionId, own, 0)).toBeUndefined();
    // What was taken is no longer the table's: neither its node nor its connection ends it.
    table.dropNode('n1');
    own.close();
    expect([freed, own.sessions(), isWiped(session)]).toEqual([1, 0, [false, false]]);
  });

  test('is kept for 10 s, whether it is swept or taken', () => {
    const own = connection();
    const [one, two, three] = [open('n1', own, 0), open('n2', own, 5), open('n3', own, 6)];
    table.sweep(10_000);
    expect(table.size).toBe(3);
    table.sweep(10_001);
    expect([table.size, freed, isWiped(one)]).toEqual([2, 1, wiped]);
    expect(table.take(two.sessionId, own, 10_006)).toBeUndefined();
    expect([table.size, freed, isWiped(two)]).toEqual([1, 2, wiped]);
    expect(table.take(three.sessionId, own, 10_006)).toBe(three);
    expect(own.sessions()).toBe(0);
  });

  test('is dropped when its node has opened two later ones, and keys of others stay', () => {
    const own = connection();
    const other = open('n2', own);
    const [one, two, three] = [open('n1', own), open('n1', own), open('n1', own)];
    expect([isWiped(one), table.size, freed]).toEqual([wiped, 3, 1]);
    for (const session of [two, three, other]) expect(table.take(session.sessionId, own, 0)).toBe(session);
  });

  test('ends with its connection, which gets one listener however many it opens', () => {
    const [own, other] = [connection(), connection()];
    const sessions = [open('n1', own), open('n2', own), open('n3', own)];
    const stays = open('n4', other);
    expect([own.listeners(), other.listeners()]).toEqual([1, 1]);
    own.close();
    expect(sessions.map(isWiped)).toEqual([wiped, wiped, wiped]);
    expect([table.size, freed, own.sessions()]).toEqual([1, 3, 0]);
    expect(table.take(stays.sessionId, other, 0)).toBe(stays);
  });

  test('ends with its node, and all end at once when the transport closes', () => {
    const own = connection();
    const [one, two, three] = [open('n1', own), open('n1', own), open('n2', own)];
    table.dropNode('nobody');
    table.dropNode('n1');
    expect([isWiped(one), isWiped(two), table.size, freed]).toEqual([wiped, wiped, 1, 2]);
    open('n1', own);
    table.clear();
    expect([isWiped(three), table.size, freed, own.sessions()]).toEqual([wiped, 0, 4, 0]);
  });
});
