/** A full listener: who must leave for a newcomer, who never does, and how long a connection may go without a session. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { h2cPreface } from '../../src/transport/listener/sniff.js';
import { startAgentFixture, type AgentFixture } from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import { startListenerFixture, type ListenerFixture } from '../support/listener-fixture.js';
import { proxyHeader } from '../support/proxy-header.js';
import { helloOf, isRefused } from '../support/raw-agent.js';

describe('agents and strangers', () => {
  let fixture: AgentFixture;
  const strangers = new Set<Socket>();
  let flooding = false;

  afterEach(async () => {
    flooding = false;
    for (const socket of strangers) socket.destroy();
    await fixture.close();
  });

  /** Keeps `count` connections open from one address, each with nothing but a preface. */
  function flood(localAddress: string, count: number): void {
    flooding = true;
    const dial = (): void => {
      if (!flooding) return;
      const socket = connect({ host: fixture.host, port: fixture.port, localAddress });
      strangers.add(socket);
      socket.on('error', () => undefined);
      socket.on('connect', () => socket.write(h2cPreface));
      socket.resume();
      socket.on('close', () => {
        strangers.delete(socket);
        setTimeout(dial, 50);
      });
    };
    for (let index = 0; index < count; index += 1) dial();
  }

  test('an address that holds every connection without a session keeps no agent of another one out', async () => {
    fixture = await startAgentFixture({ maxConnections: 40 });
    flood('127.0.0.66', 50);
    await eventually(() => fixture.transport.stats().connections.closed.evicted).toBeGreaterThan(20);
    for (let index = 0; index < 30; index += 1) {
      const good = await fixture.agent(`node-${index}`);
      const opened = await good.open();
      expect(isRefused(opened)).toBe(false);
      // Every third stays and takes a place for good.
      if (index % 3 > 0) good.disconnect();
      else if (!isRefused(opened)) good.attach(opened).say(helloOf());
    }
    await eventually(() => fixture.telemetry.opened.length).toBe(10);
    await eventually(() => fixture.transport.stats().connections.open.with_session).toBe(10);
    expect(fixture.transport.stats().connections.closed.refused).toBe(0);
  });

  test('a session, also one that is not attached yet, is never closed for a newcomer; without others he is refused', async () => {
    fixture = await startAgentFixture({ maxConnections: 2 });
    const attached = await fixture.live(await fixture.agent());
    const second = await fixture.agent('node-2');
    const pending = await second.session();
    const newcomer = connect({ host: fixture.host, port: fixture.port });
    strangers.add(newcomer);
    newcomer.on('error', () => undefined);
    newcomer.resume();
    await once(newcomer, 'close');
    expect(fixture.transport.stats().connections.closed).toMatchObject({ refused: 1, evicted: 0 });
    const later = second.attach(pending);
    later.say(helloOf());
    await eventually(() => fixture.telemetry.opened.length).toBe(2);
    await attached.beat(1);
  });

  test('a connection is closed ten seconds after its last session has ended, and its agent comes back on a new one', async () => {
    fixture = await startAgentFixture();
    const raw = await fixture.agent();
    const stream = await fixture.live(raw);
    fixture.settings = { ...fixture.settings, offline_after_secs: 1000 };
    await stream.beat(1);
    fixture.clock.advance(60_000);
    await stream.beat(2);
    expect(fixture.transport.stats().connections.closed.idle).toBe(0);
    stream.halfClose();
    await stream.status;
    await eventually(() => fixture.transport.stats().connections.open.without_session).toBe(1);
    fixture.clock.advance(10_001);
    await eventually(() => fixture.transport.stats().connections).toMatchObject({
      closed: { idle: 1 },
      open: { without_session: 0, with_session: 0 },
    });
    await eventually(async () => isRefused(await raw.open())).toBe(false);
  });
});

describe('the listener', () => {
  let fixture: ListenerFixture;
  afterEach(() => fixture.close());

  test('behind a balancer counts by the address that it names', async () => {
    fixture = await startListenerFixture({ maxConnections: 4, proxyFrom: ['127.0.0.0/8'] });
    const from = (address: string) => fixture.dial(Buffer.concat([proxyHeader(address), h2cPreface]));
    const sockets = [await from('2001:db8::1'), await from('198.51.100.7'), await from('2001:db8::2')];
    sockets.push(await from('198.51.100.8'));
    await eventually(() => fixture.accepted.length).toBe(4);
    await from('198.51.100.9');
    await eventually(() => fixture.accepted.length).toBe(5);
    // Both IPv6 addresses are of one /64.
    await eventually(() => sockets.map((socket) => socket.closed)).toEqual([true, false, false, false]);
    expect(fixture.refusals).toEqual([{ reason: 'connection_evicted', address: '2001:db8::1' }]);
  });

  test('closes a connection without a session after ten seconds, a slow beginning included', async () => {
    fixture = await startListenerFixture();
    const { accepted, clock, dial, listener } = fixture;
    const idle = await dial();
    clock.advance(4_000);
    idle.write(h2cPreface);
    const busy = await dial(h2cPreface);
    await eventually(() => accepted.length).toBe(2);
    accepted[1]!.sessionOpened();
    clock.advance(6_001);
    await eventually(() => idle.closed).toBe(true);
    clock.advance(60_000);
    accepted[1]!.sessionEnded();
    clock.advance(9_999);
    await eventually(() => listener.stats()).toMatchObject({
      open: { without_session: 1 },
      closed: { idle: 1, silent: 0 },
    });
    expect(busy.closed).toBe(false);
    clock.advance(2);
    await eventually(() => busy.closed).toBe(true);
    expect(listener.stats().closed.idle).toBe(2);
  });
});
