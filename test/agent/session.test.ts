/**
 * Sessions of the reference agent against a plain control server, as far as the conformance kit does not see them: what every
 * agent must do is proven by its scenarios, in `../agent-check`.
 */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { status } from '@grpc/grpc-js';
import { describe, expect, it, vi } from 'vitest';
import { startAgent, type AgentHandle, type AgentOptions } from '../../src/agent/agent.js';
import type { Gateway } from '../../src/agent/gateway.js';
import { Command } from '../../src/gen/svc/control/v1/command.js';
import { ConfigApplyStatus, type RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { OuterTransport } from '../../src/gen/svc/control/v1/transport.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { closersAfterEach } from '../support/closers.js';
import { agentRuntime } from '../support/agent-runtime.js';
import {
  issuePsk,
  startControlServer,
  type ControlServer,
  type ControlServerOptions,
  type Said,
  type ServerSession,
} from '../support/agent-control-server.js';
import { cluster, freePort, realityRule, snapshot, tcpRule, tcpServer, udpRule } from '../support/snapshots.js';
import { eventually } from '../support/eventually.js';

const closers = closersAfterEach();

async function server(options: ControlServerOptions = {}, issued = issuePsk()): Promise<ControlServer> {
  const made = await startControlServer(options, issued);
  closers.push(() => made.stop());
  return made;
}

async function agent(of: ControlServer, options: Partial<AgentOptions> = {}): Promise<AgentHandle> {
  const made = await startAgent({ config: of.config, ...options });
  closers.push(() => made.close());
  return made;
}

/** A service with one configuration: answers `unchanged` to an agent that has it, else the snapshot. */
function serving(configuration: RuntimeConfigSnapshot, secs = 1) {
  return (said: Said, session: ServerSession): void => {
    if (said.$case === 'heartbeat') session.beat(said.value.sequence, secs, secs);
    if (said.$case !== 'configRequest') return;
    const { generation } = configuration;
    if (said.value.configVersion !== generation) session.push(configuration);
    else session.send({ $case: 'configUpdate', value: { update: { $case: 'unchanged', value: { generation } } } });
  };
}

const payloadsOf = (session: ServerSession | undefined): string[] => (session?.said ?? []).map(({ $case }) => $case);

describe('a session of the reference agent', () => {
  it('lets the service send 1 MiB at once, so that a large snapshot does not wait for round trips', async () => {
    const heard: Buffer[] = [];
    const listening = await tcpServer((socket) => void socket.on('data', (data) => heard.push(data)));
    closers.push(() => listening.close());
    const service = await server();
    await agent({ ...service, config: { ...service.config, endpoint: { host: '127.0.0.1', port: listening.port } } });
    const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'.length;
    const frameHeader = 9;
    /** Of SETTINGS, the first frame: identifiers of two bytes, values of four. */
    const settings = (): ReadonlyMap<number, number> => {
      const bytes = Buffer.concat(heard).subarray(preface);
      const length = bytes.length < frameHeader ? 0 : bytes.readUIntBE(0, 3);
      const body = bytes.subarray(frameHeader, frameHeader + length);
      const at = Array.from({ length: Math.floor(body.length / 6) }, (_, index) => index * 6);
      return new Map(at.map((offset) => [body.readUInt16BE(offset), body.readUInt32BE(offset + 2)]));
    };
    const initialWindowSize = 4;
    await eventually(() => settings().get(initialWindowSize)).toBe(1024 * 1024);
  });

  it('says hello, requests version 0, applies, reports, and sends its whole table with each heartbeat', async () => {
    const port = await freePort();
    const configuration = snapshot(7, { tcp: [tcpRule(port, '127.0.0.1:9')] });
    const service = await server({
      grant: { heartbeatIntervalSecs: 1, metricsIntervalSecs: 1 },
      onSaid: serving(configuration),
    });
    const running = await agent(service);
    await eventually(() => running.state().generation).toBe(7);
    expect(running.state().connected).toBe(true);
    const [session] = service.sessions;
    await eventually(() => payloadsOf(session)).toContain('metrics');
    expect(payloadsOf(session).slice(0, 2)).toEqual(['hello', 'configRequest']);
    expect(session?.said[0]).toMatchObject({
      value: {
        features: 'tcp_raw tcp_sni tcp_tls tcp_reality udp_raw udp_enc http confirm diagnostics route_state'.split(' '),
      },
    });
    const request = session?.said.find((said) => said.$case === 'configRequest');
    expect(request?.value).toMatchObject({ configVersion: 0n, nodeId: 'node-1' });
    expect(request?.value.checksum).toHaveLength(0);
    const report = session?.said.find((said) => said.$case === 'applyReport');
    expect(report?.value).toMatchObject({
      generation: 7n,
      status: ConfigApplyStatus.APPLIED,
      checksum: Buffer.alloc(32, 7),
    });
    await eventually(
      () => session?.said.findLast((said) => said.$case === 'heartbeat')?.value.runtimeListeners,
    ).toMatchObject([
      {
        transport: 'tcp',
        listenAddr: '127.0.0.1',
        listenPort: port,
        state: 'running',
        bytesIn: 0n,
        routes: [{ matchKind: 'default', nextHop: '127.0.0.1:9' }],
      },
    ]);
    const beat = session?.said.findLast((said) => said.$case === 'heartbeat')?.value;
    for (const usage of [beat!.cpuUsage, beat!.memoryUsage]) expect(usage >= 0 && usage <= 1).toBe(true);
  });

  it('reports all that was carried before it ends with the agent, however long its intervals are', async () => {
    const port = await freePort();
    const echo = await tcpServer((socket) => void socket.pipe(socket));
    closers.push(() => echo.close());
    const configuration = snapshot(1, { tcp: [tcpRule(port, `127.0.0.1:${echo.port}`)] });
    const grant = { heartbeatIntervalSecs: 60, metricsIntervalSecs: 60 };
    const service = await server({ grant, onSaid: serving(configuration, 60) });
    const running = await agent(service);
    await eventually(() => running.state().generation).toBe(1);
    // Of the apply, and the first one.
    await eventually(() => payloadsOf(service.sessions[0]).filter((name) => name === 'heartbeat').length).toBe(2);
    const client = connect(port, '127.0.0.1');
    client.end(Buffer.alloc(200_000));
    client.resume();
    await once(client, 'close');
    await running.close();
    const [beat, metrics, close] = service.sessions[0]?.said.slice(-3) ?? [];
    const counted = { bytesIn: 200_000n, bytesOut: 200_000n };
    expect(beat).toMatchObject({ $case: 'heartbeat', value: { runtimeListeners: [{ state: 'running', ...counted }] } });
    expect(metrics).toMatchObject({ $case: 'metrics', value: { bandwidth: counted } });
    expect(close).toMatchObject({ $case: 'close', value: { reason: SessionCloseReason.NORMAL } });
  });

  it('reports at once what runs after each apply, and counts no such heartbeat as missed', async () => {
    const ports = await Promise.all([freePort(), freePort(), freePort(), freePort(), freePort()]);
    const of = (generation: number) =>
      snapshot(generation, { tcp: ports.slice(0, generation).map((port) => tcpRule(port, '127.0.0.1:9')) });
    // Answers no heartbeat.
    const service = await server({
      grant: { heartbeatIntervalSecs: 60 },
      onSaid: (said, session) => void (said.$case === 'configRequest' && session.push(of(1))),
    });
    await agent(service);
    const said = () => service.sessions[0]?.said ?? [];
    const tables = () =>
      said().flatMap((one) => (one.$case === 'heartbeat' ? [one.value.runtimeListeners.length] : []));
    await eventually(tables).toEqual([1, 1]);
    for (const generation of [2, 3, 4, 5]) {
      service.sessions[0]?.push(of(generation));
      await eventually(() => tables().at(-1)).toBe(generation);
      expect(said().slice(-2)).toMatchObject([{ $case: 'applyReport' }, { $case: 'heartbeat' }]);
    }
    expect(service.sessions).toHaveLength(1);
  });

  it('reports an upstream at once when it was checked for the first time, and when its health changes', async () => {
    const [port, upstream] = [await freePort(), await freePort()];
    const checked = { ...cluster('web', [`127.0.0.1:${upstream}`]), healthCheck: { intervalMs: 20, path: '' } };
    const service = await server({
      onSaid: serving(snapshot(1, { tcp: [tcpRule(port, 'cluster:web')], clusters: [checked] }), 60),
    });
    await agent(service);
    const healths = () =>
      (service.sessions[0]?.said ?? []).flatMap((said) =>
        said.$case === 'metrics' ? [said.value.gateway?.upstreams.map(({ healthy }) => healthy)] : [],
      );
    await eventually(healths).toEqual([[false]]);
    const listening = createServer((socket) => socket.resume().on('error', () => undefined));
    listening.listen(upstream, '127.0.0.1');
    closers.push(async () => void listening.close());
    await eventually(healths).toEqual([[false], [true]]);
  });

  it('tells at once that the target of a REALITY hop cannot be reached', async () => {
    const [port, targetPort] = [await freePort(), await freePort()];
    const rule = realityRule(port, '127.0.0.1:9', { keys: generateX25519(), serverNames: ['a.example'], targetPort });
    const service = await server({
      grant: { heartbeatIntervalSecs: 60 },
      onSaid: serving(snapshot(1, { tcp: [rule] }), 60),
    });
    await agent(service);
    const told = () => service.sessions[0]?.said.findLast((said) => said.$case === 'heartbeat')?.value.runtimeListeners;
    await eventually(told).toMatchObject([{ state: 'running', routes: [{ state: 'target_unreachable' }] }]);
  });

  it('joins a snapshot of many fragments', async () => {
    const rules = [];
    // Of a kind that this agent cannot run and is told to leave out, so that no sockets are opened.
    const transportProfile = { ...udpRule(1, '127.0.0.1:9').transportProfile!, outer: OuterTransport.FAKE_TCP };
    for (let i = 0; i < 3000; i += 1)
      rules.push(udpRule(20_000 + i, '127.0.0.1:9', { transportProfile }, `${'n'.repeat(50)}${i}`));
    const service = await server({ grant: { heartbeatIntervalSecs: 1 }, onSaid: serving(snapshot(1, { udp: rules })) });
    const running = await agent(service, { config: { ...service.config, rejectUnsupported: false } });
    await eventually(() => running.state().generation).toBe(1);
    // The table that the agent sends back is longer than one frame too.
    await eventually(
      () => service.sessions[0]?.said.findLast((said) => said.$case === 'heartbeat')?.value.runtimeListeners.length,
    ).toBe(3000);
  });

  it('ignores the legacy split updates, and a payload of a later release', async () => {
    const service = await server({
      onSaid(said, session) {
        if (said.$case !== 'configRequest') return;
        session.send({
          $case: 'configUpdate',
          value: { update: { $case: 'nodeConfig', value: { multiplex: true, multiplexPort: 1 } } },
        });
        session.send({ $case: 'configUpdate', value: { update: { $case: 'l3Config', value: { rules: [] } } } });
        session.send({ $case: 'configUpdate', value: { update: undefined } });
        session.send(undefined as never);
        serving(snapshot(2))(said, session);
      },
    });
    const running = await agent(service);
    await eventually(() => running.state().generation).toBe(2);
    await eventually(() => payloadsOf(service.sessions[0])).toEqual([
      'hello',
      'configRequest',
      'applyReport',
      'heartbeat',
    ]);
    expect(service.sessions).toHaveLength(1);
  });

  it('answers RUN_DIAGNOSTICS on the session that it has then, and a second one with the same report', async () => {
    const [runtime, commands] = [agentRuntime(closers), [Command.RUN_DIAGNOSTICS, Command.RUN_DIAGNOSTICS]];
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const probe: Gateway['probe'] = async (signal) => (await held, runtime.probe(signal));
    const service = await server({
      grant: { heartbeatIntervalSecs: 1 },
      onSaid(said, session) {
        serving(snapshot(4))(said, session);
        if (said.$case === 'heartbeat') session.beat(said.value.sequence, 1, 1, commands.splice(0));
      },
    });
    await agent(service, { gateway: { ...runtime, probe } });
    await eventually(() => commands).toEqual([]);
    service.sessions[0]?.drop(status.UNAVAILABLE);
    await eventually(() => service.sessions.length).toBe(2);
    release();
    await eventually(() => payloadsOf(service.sessions[1])).toContain('diagnostics');
    const reports = service.sessions.flatMap(({ said }) => said.filter(({ $case }) => $case === 'diagnostics'));
    expect(reports).toHaveLength(1);
  });
});

describe('an agent whose sessions are lost again and again', () => {
  it('leaves nothing at the signals that outlive them', async () => {
    const any = vi.spyOn(AbortSignal, 'any');
    closers.push(async () => any.mockRestore());
    const service = await server({ onSaid: serving(snapshot(9), 60) });
    await agent(service, { random: () => 0 });
    for (const index of [0, 1]) {
      await eventually(() => payloadsOf(service.sessions[index])).toContain('configRequest');
      service.sessions[index]?.drop(status.UNAVAILABLE);
      await eventually(() => service.sessions.length).toBe(index + 2);
    }
    const sources = any.mock.calls.flatMap(([signals]) => [...signals]);
    expect(sources.length).toBe(new Set(sources).size);
  });
});

describe('a rekey', () => {
  it('opens a new session, closes the old one with REKEY, repeats the last report and stays connected', async () => {
    const configuration = snapshot(9);
    let closedBeforeHello = true;
    const sessionsSeen: ServerSession[] = [];
    const service = await server({
      grant: { rekeyAfterSecs: 1 },
      onSaid(said, session) {
        // With intervals that are longer than this test.
        serving(configuration, 60)(said, session);
        if (said.$case !== 'hello') return;
        const old = sessionsSeen.at(-1);
        if (old !== undefined && old.said.at(-1)?.$case !== 'close') closedBeforeHello = false;
        sessionsSeen.push(session);
      },
    });
    let lost = 0;
    let rekeyed = 0;
    const running = await agent(service, {
      events: { onDisconnected: () => (lost += 1), onRekeyed: () => (rekeyed += 1) },
    });
    await eventually(() => rekeyed).toBeGreaterThanOrEqual(2);
    await eventually(() => payloadsOf(service.sessions[1]).slice(0, 3)).toEqual([
      'hello',
      'applyReport',
      'configRequest',
    ]);
    expect(service.sessions[0]?.said.at(-1)).toMatchObject({
      $case: 'close',
      value: { reason: SessionCloseReason.REKEY },
    });
    expect(service.sessions[1]?.said[1]).toMatchObject({ value: { generation: 9n } });
    expect(service.sessions[1]?.said[2]).toMatchObject({ value: { configVersion: 9n } });
    // Metrics are not repeated, and come with their interval.
    expect(service.sessions.flatMap(payloadsOf)).not.toContain('metrics');
    expect(closedBeforeHello).toBe(true);
    expect(lost).toBe(0);
    expect(running.state().connected).toBe(true);
  });
});
