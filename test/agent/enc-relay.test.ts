/** UDP ENC between agents: chains of it, several keys and RAW on one socket, wrong keys, other keys while datagrams pass. */
import { createSocket } from 'node:dgram';
import { afterEach, describe, expect, it } from 'vitest';
import { encTiming } from '../../src/channel/enc/timing.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { agentRuntime, applied } from '../support/agent-runtime.js';
import { eventually } from '../support/eventually.js';
import { encRule, freePort, overEnc, snapshot, tcpServer, udpRule } from '../support/snapshots.js';
import { udpPeers } from '../support/udp-peers.js';

const { closers, echo, client, ask } = udpPeers();
const times = { ...encTiming };
afterEach(() => void Object.assign(encTiming, times));

/** What passes over loopback to a port, both ways, as an onlooker sees it. */
async function tap(port: number): Promise<{ readonly port: number; readonly seen: Buffer[] }> {
  const [inner, outer] = [client(), createSocket('udp4')];
  const seen: Buffer[] = [];
  let caller: { readonly port: number; readonly address: string } | undefined;
  outer.on('message', (packet, from) => {
    seen.push(packet);
    caller = from;
    inner.send(packet, port, '127.0.0.1');
  });
  inner.on('message', (packet) => {
    seen.push(packet);
    if (caller !== undefined) outer.send(packet, caller.port, caller.address);
  });
  await new Promise<void>((resolve) => outer.bind(0, '127.0.0.1', resolve));
  closers.push(async () => void outer.close());
  return { port: outer.address().port, seen };
}

describe('UDP ENC', () => {
  it('carries datagrams through three agents and keeps clients apart; what passes between them is opaque', async () => {
    const [second, third] = [generateX25519(), generateX25519()];
    const [entry, middle, exit] = [await freePort(), await freePort(), await freePort()];
    const [edge, relay, last] = [agentRuntime(closers), agentRuntime(closers), agentRuntime(closers)];
    const wire = await tap(exit);
    await applied(last, 1, { udp: [encRule(exit, third, await echo('t'))] });
    const between = { ...encRule(middle, second, ''), ...overEnc(`127.0.0.1:${wire.port}`, third.publicKey) };
    await applied(relay, 1, { udp: [between] });
    await applied(edge, 1, { udp: [udpRule(entry, '', overEnc(`127.0.0.1:${middle}`, second.publicKey))] });
    const [a, b] = [client(), client()];
    expect(await Promise.all([ask(a, entry, 'from a'), ask(b, entry, 'from b')])).toEqual(['t:from a', 't:from b']);
    const large = 'x'.repeat(1_400);
    expect(await ask(a, entry, large)).toBe(`t:${large}`);
    expect(Buffer.concat(wire.seen).includes('from a')).toBe(false);
    expect([...new Set(wire.seen.map(([type]) => type))].toSorted()).toEqual([1, 2, 3]);
    const [row] = last.runtimeListeners();
    expect(row).toMatchObject({ state: 'running', activeSessions: 2n });
    expect(row?.routes).toEqual([
      expect.objectContaining({
        security: 'noise',
        matchKind: 'local_key',
        matchValue: Buffer.from(third.publicKey).toString('base64url'),
      }),
    ]);
    expect(edge.linkMetrics()[0]?.rttMs).toBeGreaterThan(0);
  });

  it('shares one socket with other keys and with RAW, which gets everything that is not ENC', async () => {
    const [one, two] = [generateX25519(), generateX25519()];
    const [port, first, second] = [await freePort(), await freePort(), await freePort()];
    const gateway = agentRuntime(closers);
    const rules = [
      encRule(port, one, await echo('one'), 'one'),
      encRule(port, two, await echo('two'), 'two'),
      udpRule(port, await echo('raw'), {}, 'raw'),
      udpRule(first, '', overEnc(`127.0.0.1:${port}`, one.publicKey)),
      udpRule(second, '', overEnc(`127.0.0.1:${port}`, two.publicKey)),
    ];
    await applied(gateway, 1, { udp: rules });
    expect(await ask(client(), first, 'x')).toBe('one:x');
    expect(await ask(client(), second, 'x')).toBe('two:x');
    const plain = client();
    // Datagrams of other protocols, of one byte, and with the types of ENC.
    for (const text of ['x', '\u0001'.repeat(61), '\u0003'.repeat(40)])
      expect(await ask(plain, port, text)).toBe(`raw:${text}`);
    const [row] = gateway.runtimeListeners();
    expect(row?.routes.map(({ matchKind }) => matchKind).toSorted()).toEqual(['default', 'local_key', 'local_key']);
  });

  it('asks the saved policy whose a broken handshake is: dropped by default, RAW if that comes first', async () => {
    const keys = generateX25519();
    const [port, entry] = [await freePort(), await freePort()];
    const gateway = agentRuntime(closers);
    const wire = await tap(port);
    const udp = [
      encRule(port, keys, await echo('enc'), 'enc'),
      udpRule(port, await echo('raw'), {}, 'raw'),
      udpRule(entry, '', overEnc(`127.0.0.1:${wire.port}`, keys.publicKey)),
    ];
    const policy = (priorityOrder: readonly string[]) => ({
      policies: [{ transport: 'udp', listenAddr: '127.0.0.1', listenPort: port, priorityOrder }],
    });
    await applied(gateway, 1, { udp, ...policy(['reality', 'tls', 'noise', 'raw']) });
    expect(await ask(client(), entry, 'x')).toBe('enc:x');
    const broken = Buffer.from(wire.seen[0] ?? []);
    expect([broken[0], broken.length]).toEqual([1, 61]);
    broken[60] = (broken[60] ?? 0) ^ 1;
    const plain = client();
    const before = gateway.runtimeListeners()[0]?.totalSessions;
    plain.send(broken, port, '127.0.0.1');
    // A later datagram that is answered shows that this one was not.
    expect(await ask(plain, port, 'later')).toBe('raw:later');
    expect(gateway.runtimeListeners()[0]?.totalSessions).toBe((before ?? 0n) + 1n);
    await applied(gateway, 2, { udp, ...policy(['raw', 'noise']) });
    const raw = client();
    raw.send(broken, port, '127.0.0.1');
    await eventually(() => gateway.runtimeListeners()[0]?.totalSessions).toBe((before ?? 0n) + 2n);
    expect(await ask(raw, port, 'and')).toBe('raw:and');
    expect(await ask(client(), entry, 'x')).toBe('enc:x');
  });

  it('counts a hop with another key as a failed handshake, and forwards nothing to it', async () => {
    Object.assign(encTiming, { handshakeTriesMs: [100, 100, 100, 100, 100] });
    const [port, entry] = [await freePort(), await freePort()];
    const gateway = agentRuntime(closers);
    const target = await echo('t');
    await applied(gateway, 1, {
      udp: [
        encRule(port, generateX25519(), target),
        udpRule(entry, '', overEnc(`127.0.0.1:${port}`, generateX25519().publicKey)),
      ],
    });
    client().send('x', entry, '127.0.0.1');
    await eventually(() => gateway.report().connections).toMatchObject({ handshakeFailures: 1n, failed: 1n });
    expect(gateway.runtimeListeners().map(({ totalSessions }) => totalSessions)).toEqual([0n, 1n]);
  });

  it('keeps flows when the key is replaced on both sides, and takes the new key for new ones', async () => {
    const [old, fresh] = [generateX25519(), generateX25519()];
    const [port, entry] = [await freePort(), await freePort()];
    const [edge, exit] = [agentRuntime(closers), agentRuntime(closers)];
    const target = await echo('t');
    const apply = async (generation: number, keys: typeof old): Promise<void> => {
      await applied(exit, generation, { udp: [encRule(port, keys, target)] });
      await applied(edge, generation, { udp: [udpRule(entry, '', overEnc(`127.0.0.1:${port}`, keys.publicKey))] });
    };
    await apply(1, old);
    const early = client();
    expect(await ask(early, entry, 'x')).toBe('t:x');
    await apply(2, fresh);
    expect(await ask(early, entry, 'still')).toBe('t:still');
    expect(await ask(client(), entry, 'new')).toBe('t:new');
    expect(exit.report().connections).toMatchObject({ accepted: 2n, failed: 0n });
  });

  it('names a wrong key pair, and a TCP port that something else holds is no obstacle', async () => {
    const port = await freePort();
    const held = await tcpServer(() => undefined);
    closers.push(() => held.close());
    const gateway = agentRuntime(closers);
    const keys = { ...generateX25519(), publicKey: generateX25519().publicKey };
    const report = await gateway.apply(snapshot(1, { udp: [encRule(port, keys, '127.0.0.1:9', 'c')] }));
    expect(report?.errors).toEqual([
      {
        resourceType: 'l4_chain',
        resourceId: 'c',
        path: 'hops[0].credential_id',
        message: 'expected a private key of 32 bytes, and the matching public key',
      },
    ]);
    await applied(gateway, 2, { udp: [encRule(held.port, generateX25519(), '127.0.0.1:9')] });
  });
});
