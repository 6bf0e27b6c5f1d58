/**
 * A peer that was written from docs/data-plane.md and docs/reality.md alone (`test/servers/data-plane`, in Go) meets the reference
 * agent on both sides of ENC and REALITY, and makes the test vectors anew.
 */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { relayLimits } from '../../src/agent/relays/limits.js';
import { encTiming } from '../../src/channel/enc/timing.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import {
  dataPlaneBinary,
  dialEncHop,
  dialRealityHop,
  startEncHop,
  startRealityHop,
  vectorDifferences,
} from '../servers/data-plane-process.js';
import { realityBinary, startGoTarget } from '../servers/reality-process.js';
import { agentRuntime } from '../support/agent-runtime.js';
import { eventually } from '../support/eventually.js';
import { startTlsTarget, targetName } from '../support/reality-fixture.js';
import {
  encRule,
  freePort,
  overEnc,
  overReality,
  realityRule,
  snapshot,
  tcpRule,
  tcpServer,
  udpRule,
} from '../support/snapshots.js';
import { udpPeers } from '../support/udp-peers.js';

const { closers, echo, client } = udpPeers();
const [times, limits] = [{ ...encTiming }, { ...relayLimits }];
beforeEach(() => void Object.assign(relayLimits, { realityProbeMs: 100 }));
afterEach(() => {
  Object.assign(encTiming, times);
  Object.assign(relayLimits, limits);
});

const keyed = (key: Uint8Array) => ({ key, shortId: '0a', name: targetName });
const apply = async (parts: Parameters<typeof snapshot>[1]) => {
  const gateway = agentRuntime(closers);
  expect((await gateway.apply(snapshot(1, parts)))?.errors).toEqual([]);
  return gateway;
};

describe.skipIf(!existsSync(dataPlaneBinary))('a peer that was written from the documents', () => {
  it('makes the same vectors', async () => {
    expect(await vectorDifferences(fileURLToPath(new URL('../vectors', import.meta.url)))).toEqual([]);
  });

  it('finds that a hop of ENC keeps each rule, within one flow', async () => {
    const [port, keys] = [await freePort(), generateX25519()];
    const gateway = await apply({ udp: [encRule(port, keys, await echo('t'))] });
    expect(await dialEncHop(keys.publicKey, port)).toEqual({
      handshake: true,
      datagram: true,
      'largest without fragments': true,
      ping: true,
      'other kinds are ignored': true,
      'any order': true,
      'each counter once': true,
      'no counter below the window': true,
      'a forged packet changes nothing': true,
      rekey: true,
      'the old session is heard, and answered in the new one': true,
      'another address': true,
    });
    expect(gateway.runtimeListeners()).toEqual([expect.objectContaining({ totalSessions: 1n, errorSessions: 0n })]);
  });

  it('is dialled with ENC: each datagram once, over a change of keys, and again after it has forgotten everything', async () => {
    Object.assign(encTiming, { rekeyAfterMs: 500, silenceMs: 300, pingEveryMs: 200 });
    const keys = generateX25519();
    const hop = await startEncHop(keys.privateKey);
    closers.push(() => hop.close());
    const [entry, socket] = [await freePort(), client()];
    await apply({ udp: [udpRule(entry, '', overEnc(`127.0.0.1:${hop.port}`, keys.publicKey))] });
    const answers: string[] = [];
    socket.on('message', (answer) => answers.push(answer.toString()));
    let asked = 0;
    const isAnswered = (): Promise<void> => {
      const from = asked;
      return eventually(() => {
        socket.send(`${(asked += 1)}`, entry, '127.0.0.1');
        return answers.some((answer) => Number(answer.slice(2)) > from);
      }).toBe(true);
    };
    const seen = async (line = 'seen') => (await hop.ask(line)) as Readonly<Record<string, number>>;
    while (((await seen())['changes of session'] ?? 0) < 2) await isAnswered();
    expect(await seen('forget')).toMatchObject({ handshakes: 1, flows: 1 });
    await isAnswered();
    expect(new Set(answers).size).toBe(answers.length);
    expect(answers.some((answer) => answer.startsWith('u:'))).toBe(true);
    const all = await seen();
    expect(all).toMatchObject({ handshakes: 2, flows: 2 });
    expect(all).not.toHaveProperty('not opened');
  });

  it('enters a hop of REALITY, and meets the target with another short id', async () => {
    const target = await startTlsTarget();
    const echoing = await tcpServer((socket) => socket.pipe(socket));
    closers.push(
      () => target.close(),
      () => echoing.close(),
    );
    const [port, keys] = [await freePort(), generateX25519()];
    const of = { keys, serverNames: [targetName], targetPort: target.port };
    await apply({ tcp: [realityRule(port, `127.0.0.1:${echoing.port}`, of)] });
    expect(await dialRealityHop(keyed(keys.publicKey), port)).toEqual({ entered: true, echoed: true });
    const wrong = { ...keyed(keys.publicKey), shortId: 'ff' };
    expect(await dialRealityHop(wrong, port)).toEqual({ entered: false });
  });

  const targets = {
    OpenSSL: () => startTlsTarget(),
    'Go, with a hybrid key exchange': () => startGoTarget(targetName),
  };
  it.skipIf(!existsSync(realityBinary)).each(Object.entries(targets))(
    'is dialled with REALITY, before a target of %s',
    async (_name, startTarget) => {
      const target = await startTarget();
      closers.push(() => target.close());
      const keys = generateX25519();
      const hop = await startRealityHop(keyed(keys.privateKey), target.port);
      closers.push(() => hop.close());
      const entry = await freePort();
      const next = `127.0.0.1:${hop.port}`;
      await apply({ tcp: [tcpRule(entry, '', overReality(next, keys.publicKey, targetName))] });
      const socket = connect({ host: '127.0.0.1', port: entry, allowHalfOpen: true });
      let got = '';
      socket.on('data', (bytes: Buffer) => (got += bytes.toString()));
      // The server speaks first.
      await eventually(() => got).toBe('220 hop\r\n');
      const sent = 'to a hop of another make, '.repeat(20_000);
      socket.end(sent);
      await once(socket, 'end');
      expect(got === `220 hop\r\n${sent}`).toBe(true);
    },
  );
});
