/**
 * Light agents against a minimal control server with a real gRPC library and a real handshake. That they get along with the
 * service itself is shown by `simulate.test.ts`.
 */
import { describe, expect, it } from 'vitest';
import { startLightFleet, type LightFleet, type LightFleetOptions } from '../../scripts/simulate/light/fleet.js';
import { runtimeTable } from '../../scripts/simulate/light/payloads.js';
import { ConfigApplyStatus, type RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { closersAfterEach } from '../support/closers.js';
import {
  issuePsk,
  startControlServer,
  type ControlServer,
  type ControlServerOptions,
  type Said,
  type ServerSession,
} from '../support/agent-control-server.js';
import { eventually } from '../support/eventually.js';
import { cluster, snapshot, tcpRule, tlsRule, udpRule } from '../support/snapshots.js';

const closers = closersAfterEach();

async function server(options: ControlServerOptions = {}): Promise<ControlServer> {
  const made = await startControlServer(options);
  closers.push(() => made.stop());
  return made;
}

function fleet(of: ControlServer, count: number, options: Partial<LightFleetOptions> = {}): LightFleet {
  const made = startLightFleet({
    endpoint: of.config.endpoint,
    agents: Array.from({ length: count }, (_, index) => ({ nodeId: `node-${index}`, controlPsk: of.controlPsk })),
    ...options,
  });
  closers.push(() => made.close());
  return made;
}

const rules = (count: number) => ({ tcp: Array.from({ length: count }, (_, index) => tcpRule(20_000 + index, 'a:1')) });

/** Answers requests with the snapshot, and heartbeats with an interval of a second. */
function serving(configuration: RuntimeConfigSnapshot) {
  return (said: Said, session: ServerSession): void => {
    if (said.$case === 'configRequest') session.push(configuration);
    if (said.$case === 'heartbeat') session.beat(said.value.sequence);
  };
}
const grant = { heartbeatIntervalSecs: 1 };
const lastReport = (session: ServerSession | undefined) =>
  session?.said.findLast((said) => said.$case === 'applyReport')?.value;

describe('light agents', () => {
  it('say hello, request version 0, confirm each generation, and end with an encrypted SessionClose', async () => {
    const service = await server({ onSaid: serving(snapshot(1)) });
    const applied: string[] = [];
    const agents = fleet(service, 5, { onApplied: (node, generation) => applied.push(`${node} ${generation}`) });
    await eventually(() => agents.connected()).toBe(5);
    await eventually(() => applied.toSorted()).toEqual([0, 1, 2, 3, 4].map((index) => `node-${index} 1`));
    const [session] = service.sessions;
    expect(session?.said.slice(0, 2)).toMatchObject([
      { $case: 'hello' },
      { $case: 'configRequest', value: { configVersion: 0n } },
    ]);
    session?.push(snapshot(2));
    await eventually(() => lastReport(session)).toMatchObject({
      generation: 2n,
      checksum: Buffer.alloc(32, 2),
      status: ConfigApplyStatus.APPLIED,
    });
    await agents.close();
    expect(agents.connected()).toBe(0);
    expect(service.sessions.map((each) => each.said.at(-1))).toMatchObject(
      Array.from({ length: 5 }, () => ({ $case: 'close', value: { reason: SessionCloseReason.NORMAL } })),
    );
  });

  it('take a snapshot of several fragments, and send their whole table in as many', async () => {
    const table = { listeners: 400, routesPerListener: 10, changing: false };
    const service = await server({ grant, onSaid: serving(snapshot(3, rules(2_000))) });
    const agents = fleet(service, 1, { heartbeats: { table } });
    await eventually(() => agents.applied('node-0')).toBe(3);
    const [session] = service.sessions;
    await eventually(
      () => session?.said.findLast((said) => said.$case === 'heartbeat')?.value.runtimeListeners,
    ).toEqual(runtimeTable(table, 0));
    await eventually(() => agents.counts.answers).toBeGreaterThan(0);
  });

  it('report that all listeners of their snapshot run, of which rules may share one', async () => {
    const tcp = [tcpRule(20_000, 'a:1'), tlsRule(20_000, 'b:1', ['b.example'], 'absent', 'other')];
    const udp = [udpRule(20_000, 'a:1')];
    const service = await server({
      grant,
      onSaid: serving(snapshot(1, { tcp, udp, clusters: [cluster('web', ['a:1'])] })),
    });
    fleet(service, 1);
    const [of, place] = [{ state: 'running' }, { listenAddr: '127.0.0.1', listenPort: 20_000 }];
    await eventually(
      () => service.sessions[0]?.said.findLast((said) => said.$case === 'heartbeat')?.value.runtimeListeners,
    ).toMatchObject([
      { transport: 'tcp', ...place, ...of, routes: [{ nextHop: 'a:1' }, { nextHop: 'b:1' }] },
      { transport: 'udp', ...place, ...of, routes: [{ nextHop: 'a:1' }] },
    ]);
    const metrics = () => service.sessions[0]?.said.filter((said) => said.$case === 'metrics') ?? [];
    await eventually(metrics).toMatchObject([
      { value: { gateway: { upstreams: [{ cluster: 'web', healthy: true }] } } },
    ]);
  });

  it('send another table with each heartbeat if tables change', async () => {
    const service = await server({ grant, onSaid: serving(snapshot(1)) });
    const changing = { listeners: 2, routesPerListener: 1, changing: true };
    fleet(service, 1, { heartbeats: { table: changing, everyMs: 20 } });
    const tables = (): string[] =>
      (service.sessions[0]?.said ?? []).flatMap((said) =>
        said.$case === 'heartbeat' ? [String(said.value.runtimeListeners[0]?.bytesIn)] : [],
      );
    await eventually(() => new Set(tables()).size).toBeGreaterThan(2);
    const [first, second] = tables();
    expect(first).not.toBe(second);
  });

  it('come back after a loss with what they have, and tell it again', async () => {
    const service = await server({ onSaid: serving(snapshot(4)) });
    const agents = fleet(service, 1);
    await eventually(() => agents.applied('node-0')).toBe(4);
    service.sessions[0]?.drop();
    await eventually(() => service.sessions[1]?.said.slice(0, 3)).toMatchObject([
      { $case: 'hello' },
      { $case: 'applyReport', value: { generation: 4n } },
      { $case: 'configRequest', value: { configVersion: 4n, checksum: Buffer.alloc(32, 4) } },
    ]);
    expect(agents.counts).toMatchObject({ losses: 1, refusals: {} });
    await eventually(() => agents.connected()).toBe(1);
    expect(agents.cut(5)).toBe(1);
    await eventually(() => service.sessions.length).toBe(3);
  });

  it('correct their clock from the trailer of a refusal', async () => {
    const service = await server({ clockOffsetMs: 3_600_000, onSaid: serving(snapshot(1)) });
    const agents = fleet(service, 1);
    await eventually(() => agents.connected()).toBe(1);
    expect(service.opens()).toBe(2);
    expect(agents.counts.refusals).toEqual({});
  });

  it('count refusals by their status, and closes by their reason', async () => {
    const service = await server({
      onSaid: (_said, session) =>
        session.close({ reason: SessionCloseReason.DRAINING, message: '', retryAfterMs: 60_000 }),
    });
    const strangers = startLightFleet({
      endpoint: service.config.endpoint,
      agents: [{ nodeId: 'node-1', controlPsk: issuePsk().controlPsk }],
    });
    closers.push(() => strangers.close());
    await eventually(() => strangers.counts.refusals['UNAUTHENTICATED']).toBeGreaterThan(0);
    const agents = fleet(service, 1);
    await eventually(() => agents.counts.closes).toEqual({ DRAINING: 1 });
  });

  it('reject every snapshot but their first, naming a resource, if they are to', async () => {
    const service = await server({ onSaid: serving(snapshot(1, rules(1))) });
    const agents = fleet(service, 2, { rejecting: 1 });
    await eventually(() => agents.configured()).toBe(2);
    for (const session of service.sessions) session.push(snapshot(2, rules(1)));
    await eventually(() => service.sessions.map((session) => lastReport(session)?.status).toSorted()).toEqual([
      ConfigApplyStatus.APPLIED,
      ConfigApplyStatus.REJECTED,
    ]);
    const rejected = service.sessions.map(lastReport).find((report) => report?.status === ConfigApplyStatus.REJECTED);
    expect(rejected?.errors[0]?.resourceId).not.toBe('');
    expect(agents.counts).toMatchObject({ applies: 3, rejects: 1 });
  });

  it('read no more than a small window if they read slowly, and all of it when they relent', async () => {
    const service = await server({ grant, onSaid: serving(snapshot(1)) });
    const agents = fleet(service, 2, { slow: 1 });
    await eventually(() => agents.configured()).toBe(2);
    for (let generation = 2; generation <= 6; generation += 1) {
      for (const session of service.sessions) session.push(snapshot(generation, rules(50)));
    }
    await eventually(() => agents.applied('node-0')).toBe(6);
    // It is alive: its heartbeats continue while the answers wait.
    const beats = agents.counts.heartbeats;
    await eventually(() => agents.counts.heartbeats).toBeGreaterThan(beats + 4);
    expect(agents.applied('node-1')).toBe(1);
    expect(service.sessions.map((session) => session.over)).toEqual([false, false]);
    agents.relent();
    await eventually(() => agents.applied('node-1')).toBe(6);
    expect(agents.counts.losses).toBe(0);
  });

  it('rekey by make before break: REKEY on the old stream, then hello on the new one', async () => {
    const service = await server({ onSaid: serving(snapshot(1)) });
    const agents = fleet(service, 1, { rekeySeconds: 0.1 });
    await eventually(() => agents.counts.rekeys).toBeGreaterThan(1);
    expect(service.sessions[0]?.said.at(-1)).toMatchObject({
      $case: 'close',
      value: { reason: SessionCloseReason.REKEY },
    });
    expect(service.sessions[1]?.said[0]).toMatchObject({ $case: 'hello' });
    expect(agents.counts).toMatchObject({ connects: 1, losses: 0 });
  });
});
