/**
 * The reference agent and configurations that are to be confirmed: it goes back by itself, says so, and survives a restart
 * meanwhile. Implements `docs/contract/rollouts.md#confirmed-changes`.
 */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startAgent, type AgentHandle, type AgentOptions } from '../../src/agent/agent.js';
import { createRuntime } from '../../src/agent/runtime.js';
import { ConfigApplyStatus, type RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { eventually } from '../support/eventually.js';
import {
  issuePsk,
  startControlServer,
  type ControlServer,
  type ControlServerOptions,
  type ServerSession,
  type Said,
} from '../support/agent-control-server.js';
import { freePort, snapshot, tcpRule } from '../support/snapshots.js';

const closers: (() => Promise<unknown>)[] = [];
let stateDir: string;
let port: number;

beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'svc-agent-'));
  port = await freePort();
});
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
  await rm(stateDir, { recursive: true, force: true });
});

const of = (generation: number, secs?: number): RuntimeConfigSnapshot => ({
  ...snapshot(generation, { tcp: [tcpRule(port, `127.0.0.1:${generation}`)] }),
  confirmWithinSecs: secs,
});

/** Lets each open of a session through but one, which waits for `answer`. */
function holding(nth: number) {
  let opens = 0;
  let held: (() => void) | undefined;
  return {
    opens: () => opens,
    answer: () => held?.(),
    onOpen(next: () => void) {
      opens += 1;
      if (opens === nth) held = next;
      else next();
    },
  };
}

/** A service that sends `first` to a process without a configuration, and confirms what it is told to. */
async function serving(
  first: () => RuntimeConfigSnapshot,
  confirms: (said: Said) => boolean = () => false,
  more: Partial<ControlServerOptions> = {},
) {
  const service = await startControlServer(
    {
      grant: { heartbeatIntervalSecs: 1 },
      ...more,
      onSaid(said, session) {
        if (said.$case === 'configRequest' && said.value.configVersion === 0n) session.push(first());
        if (said.$case === 'heartbeat') session.beat(said.value.sequence);
        if (said.$case === 'applyReport' && confirms(said)) confirm(session, said.value.generation);
      },
    },
    issuePsk(),
  );
  closers.push(() => service.stop());
  return service;
}
const confirm = (session: ServerSession, generation: bigint): void =>
  session.send({ $case: 'configConfirmed', value: { generation } });

async function agentOf(service: ControlServer, options: Partial<AgentOptions> = {}): Promise<AgentHandle> {
  const agent = await startAgent({ config: { ...service.config, stateDir }, ...options });
  closers.push(() => agent.close());
  return agent;
}
const generationOf = (agent: AgentHandle) => () => agent.state().generation;
const reports = ({ sessions }: ControlServer): string[] =>
  sessions.flatMap(({ said, index }) =>
    said.flatMap((one) => {
      if (one.$case !== 'applyReport') return [];
      const { generation, status, errors } = one.value;
      const outcome = status === ConfigApplyStatus.APPLIED ? 'applied' : errors.map(({ message }) => message).join();
      return [`${index}: ${generation} ${outcome}`];
    }),
  );
const files = (): Promise<string[]> => readdir(stateDir);

describe('an agent whose configuration is to be confirmed', () => {
  it('opens a session over a new connection, reports there too, and stays with what is confirmed', async () => {
    const service = await serving(
      () => of(5),
      ({ $case, value }) => $case === 'applyReport' && value.generation === 6n && service.sessions.length > 1,
    );
    const agent = await agentOf(service);
    await eventually(generationOf(agent)).toBe(5);
    service.sessions[0]?.push(of(6, 2));
    await eventually(() => service.sessions.length).toBe(2);
    await eventually(() => reports(service)).toEqual(['0: 5 applied', '0: 6 applied', '1: 6 applied']);
    // After the apply, heartbeats are sent on the new session only.
    const [old] = service.sessions;
    expect(
      old?.said.slice(old.said.findLastIndex(({ $case }) => $case === 'applyReport')).map(({ $case }) => $case),
    ).toEqual(['applyReport', 'close']);
    await eventually(files).toEqual([]);
    // By then, with a heartbeat a second, it would have gone back.
    await eventually(() => service.sessions[1]?.said.filter(({ $case }) => $case === 'heartbeat').length).toBe(4);
    expect([agent.state().generation, reports(service).length]).toEqual([6, 3]);
  });

  it('opens it over a new connection although one over the old connection was about to replace the first', async () => {
    const { opens, answer, onOpen } = holding(2);
    const grant = { heartbeatIntervalSecs: 1, rekeyAfterSecs: 1 };
    const service = await serving(
      () => of(5),
      () => false,
      { grant, onOpen },
    );
    const agent = await agentOf(service);
    await eventually(opens).toBe(2);
    service.sessions[0]?.push(of(6, 60));
    await eventually(generationOf(agent)).toBe(6);
    answer();
    await eventually(() => service.sessions.length).toBeGreaterThan(1);
    expect(service.sessions[1]?.peer).not.toBe(service.sessions[0]?.peer);
  });

  it('opens it over a connection that is newer than the apply, although it was reconnecting meanwhile', async () => {
    const { opens, answer, onOpen } = holding(2);
    const newer = holding(3);
    const service = await serving(
      () => of(5),
      () => false,
      {
        grant: { heartbeatIntervalSecs: 1, metricsIntervalSecs: 2 },
        onOpen: (next) => newer.onOpen(() => onOpen(next)),
      },
    );
    let applyNow: (() => void) | undefined;
    const applying = new Promise<void>((resolve) => (applyNow = resolve));
    const gateway = createRuntime({ rejectUnsupported: false, logger: silentLogger, clock: systemClock });
    const { apply } = gateway;
    gateway.apply = async (given, goesBack) => {
      if (given.generation === 6n) await applying;
      return apply(given, goesBack);
    };
    const agent = await agentOf(service, { gateway, random: () => 0 });
    await eventually(generationOf(agent)).toBe(5);
    service.sessions[0]?.push(of(6, 60));
    service.sessions[0]?.close({ reason: SessionCloseReason.DRAINING, message: '', retryAfterMs: 0 });
    await eventually(opens).toBe(2);
    applyNow?.();
    await eventually(generationOf(agent)).toBe(6);
    answer();
    await eventually(newer.opens).toBe(3);
    // Until then, no heartbeat suggests that it reaches the service: one would come before the metrics.
    const said = () => service.sessions[1]?.said.map(({ $case }) => $case);
    await eventually(said).toContain('metrics');
    expect(said()).not.toContain('heartbeat');
    newer.answer();
    await eventually(() => service.sessions.length).toBe(3);
    expect(service.sessions[2]?.peer).not.toBe(service.sessions[1]?.peer);
  });

  it('goes back when nobody confirms it, and reports it as rejected before its next request', async () => {
    const service = await serving(() => of(5));
    const agent = await agentOf(service);
    await eventually(generationOf(agent)).toBe(5);
    service.sessions[0]?.push(of(6, 1));
    await eventually(generationOf(agent)).toBe(6);
    expect(await files()).toEqual(['unconfirmed-node-1.json']);
    await eventually(generationOf(agent)).toBe(5);
    expect(agent.state().listeners).toMatchObject([{ state: 'running', routes: [{ nextHop: '127.0.0.1:5' }] }]);
    await eventually(() => reports(service).at(-1)).toBe('1: 6 not confirmed in 1 s');
    expect(service.sessions[1]?.said.findLast(({ $case }) => $case === 'applyReport')?.value).toMatchObject({
      checksum: Buffer.alloc(32, 6),
      errors: [{ resourceType: '', resourceId: '', path: '', message: 'not confirmed in 1 s' }],
    });
    await eventually(files).toEqual([]);
    // Its next session begins with that.
    service.sessions[1]?.drop();
    await eventually(() => service.sessions[2]?.said.slice(0, 3)).toMatchObject([
      { $case: 'hello' },
      { $case: 'applyReport', value: { generation: 6n, status: ConfigApplyStatus.REJECTED } },
      { $case: 'configRequest', value: { configVersion: 5n, checksum: Buffer.alloc(32, 5) } },
    ]);
  });

  it('goes back although it was restarted meanwhile, and the time went on', async () => {
    const service = await serving(() => of(5));
    const first = await agentOf(service);
    await eventually(generationOf(first)).toBe(5);
    service.sessions[0]?.push(of(6, 2));
    await eventually(generationOf(first)).toBe(6);
    const appliedAt = performance.now();
    await first.close();
    await service.stop();
    // There is no service that it could ask.
    const again = await agentOf(service);
    await eventually(generationOf(again)).toBe(5);
    expect(performance.now() - appliedAt).toBeLessThan(4_000);
    expect(again.state().lastReport).toMatchObject({ generation: 6n, status: ConfigApplyStatus.REJECTED });
    await eventually(files).toEqual([]);
  });

  it('begins with the rejection when the time was up before it started', async () => {
    const issued = issuePsk();
    const down = await startControlServer({}, issued);
    const first = await agentOf(down);
    await eventually(() => down.sessions[0]?.said.length).toBe(2);
    down.sessions[0]?.push(of(5));
    await eventually(generationOf(first)).toBe(5);
    down.sessions[0]?.push(of(6, 1));
    await eventually(generationOf(first)).toBe(6);
    await first.close();
    await down.stop();
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    const service = await startControlServer({ port: down.port }, issued);
    closers.push(() => service.stop());
    await agentOf(service);
    await eventually(() => service.sessions[0]?.said.slice(0, 3)).toMatchObject([
      { $case: 'hello' },
      { $case: 'applyReport', value: { generation: 6n, status: ConfigApplyStatus.REJECTED } },
      { $case: 'configRequest', value: { configVersion: 5n } },
    ]);
  });

  it('stays where it never had another one', async () => {
    const service = await serving(() => of(6, 1));
    const agent = await agentOf(service);
    await eventually(() => service.sessions[0]?.said.filter(({ $case }) => $case === 'heartbeat').length).toBe(4);
    expect([agent.state().generation, reports(service)]).toEqual([6, ['0: 6 applied']]);
  });
});
