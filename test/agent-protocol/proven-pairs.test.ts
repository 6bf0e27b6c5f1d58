/**
 * An address whose failures have used up its budget, and the agents behind the same address that were here before, as
 * behind a balancer. `docs/contract/agent-protocol.md#opensession`.
 */
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { issueControlPsk } from '../../src/security/psk.js';
import {
  createProvenPairs,
  provenPairBurst,
  provenPairFailuresPerSecond,
} from '../../src/transport/agent/admission/budgets.js';
import { startAgentFixture, type AgentFixture } from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import { createManualClock } from '../support/manual-clock.js';
import { codeOf, createRawAgent, type RawAgent } from '../support/raw-agent.js';

const admissionDelayMs = 250;
const failuresPerAddress = { perSecond: 5, burst: 10 };
const day = 24 * 3_600_000;

let fixture: AgentFixture;
const agents: RawAgent[] = [];
const floods: (() => Promise<void>)[] = [];

beforeEach(async () => {
  fixture = await startAgentFixture({ admissionDelayMs, failuresPerAddress });
});
afterEach(async () => {
  await Promise.all(floods.splice(0).map((stop) => stop()));
  for (const agent of agents.splice(0)) agent.disconnect();
  await fixture.close();
});

function stranger(nodeId: string): RawAgent {
  const agent = createRawAgent(fixture, nodeId, issueControlPsk(fixture.servicePublic).controlPsk);
  agents.push(agent);
  return agent;
}

/** An agent that had a session and has lost its connection. */
async function agentOf(nodeId: string): Promise<RawAgent> {
  const before = await fixture.agent(nodeId);
  await before.connect();
  await eventually(() => fixture.telemetry.opened.some((opened) => opened.nodeId === nodeId)).toBe(true);
  before.disconnect();
  return fixture.agent(nodeId);
}

/** Wrong handshakes from the same address, without a pause, until the test ends; resolves when the budget is used up. */
async function flood(): Promise<void> {
  let stopped = false;
  const senders = Array.from({ length: 6 }, async (_, index) => {
    const sender = stranger(`stranger-${index}`);
    while (!stopped) await Promise.all(Array.from({ length: 4 }, () => sender.open()));
  });
  floods.push(async () => {
    stopped = true;
    await Promise.all(senders);
  });
  await eventually(() => fixture.refusals.some(({ reason }) => reason === 'handshake_address_budget')).toBe(true);
}

describe('behind an address whose failures are over its budget', () => {
  test('agents that had a session from there get in at once, every one, again and again', async () => {
    const good = await Promise.all(Array.from({ length: 12 }, (_, index) => agentOf(`node-${index}`)));
    await flood();
    for (let round = 0; round < 2; round += 1) {
      // Nobody waits longer than `admissionDelayMs`: an agent that would have to is refused.
      const opened = await Promise.all(good.map((agent) => agent.open()));
      expect(opened.map(codeOf)).toEqual(good.map(() => status.OK));
    }
  });

  test('an agent without an earlier session, and one that only opened and never proved itself, wait like everybody', async () => {
    const unproven = await fixture.agent('unproven');
    await unproven.session();
    const unknown = await fixture.agent('unknown');
    await flood();
    const isRefusedOnce = async (agent: RawAgent): Promise<void> => {
      for (let i = 0; i < 100; i += 1) if (codeOf(await agent.open()) === status.RESOURCE_EXHAUSTED) return;
      throw new Error(`${agent.nodeId} was never refused`);
    };
    await Promise.all([isRefusedOnce(unproven), isRefusedOnce(unknown)]);
    // Not by the budget of their node.
    expect(fixture.transport.stats().handshakes.get('node_budget')).toBeUndefined();
  });

  test('who knows the id of such a node gains a few failures for it, and takes nothing from the other nodes', async () => {
    await agentOf('known');
    const other = await agentOf('other');
    await flood();
    const judged = fixture.transport.stats().handshakes;
    const before = judged.get('refused') ?? 0;
    const began = performance.now();
    const impostor = stranger('known');
    const answers = await Promise.all(Array.from({ length: 30 }, () => impostor.open()));
    expect(answers.map(codeOf)).toContain(status.RESOURCE_EXHAUSTED);
    const seconds = (performance.now() - began) / 1000;
    // The address goes on at its own rate; the pair adds its burst and its own slow refill.
    const most = provenPairBurst + seconds * (failuresPerAddress.perSecond + provenPairFailuresPerSecond) + 2;
    expect((judged.get('refused') ?? 0) - before).toBeLessThanOrEqual(most);
    expect(codeOf(await other.open())).toBe(status.OK);
  });
});

describe('a proven pair', () => {
  const address = '192.0.2.1';
  test('is of one address and one node, of IPv6 the /64', () => {
    const provenPairs = createProvenPairs(createManualClock());
    provenPairs.proven(address, 'a');
    provenPairs.proven('2001:db8::1', 'a');
    expect(provenPairs.take(address, 'a')).toBeDefined();
    expect(provenPairs.take('2001:db8::2', 'a')).toBeDefined();
    expect(provenPairs.take('2001:db8:0:1::1', 'a')).toBeUndefined();
    expect(provenPairs.take(address, 'b')).toBeUndefined();
    expect(provenPairs.take('192.0.2.2', 'a')).toBeUndefined();
  });
  test('takes a few failures, refills slowly, and gets back what a success took', () => {
    const clock = createManualClock();
    const provenPairs = createProvenPairs(clock);
    provenPairs.proven(address, 'a');
    for (let i = 0; i < 100; i += 1) provenPairs.take(address, 'a')?.();
    for (let i = 0; i < provenPairBurst; i += 1) expect(provenPairs.take(address, 'a')).toBeDefined();
    expect(provenPairs.take(address, 'a')).toBeUndefined();
    clock.advance(1_000 / provenPairFailuresPerSecond);
    expect(provenPairs.take(address, 'a')).toBeDefined();
    expect(provenPairs.take(address, 'a')).toBeUndefined();
  });
  test('keeps its failures when the node proves itself again', () => {
    const provenPairs = createProvenPairs(createManualClock());
    provenPairs.proven(address, 'a');
    for (let i = 0; i < provenPairBurst; i += 1) provenPairs.take(address, 'a');
    provenPairs.proven(address, 'a');
    expect(provenPairs.take(address, 'a')).toBeUndefined();
  });
  test('ends 24 hours after the last session was proven', () => {
    const clock = createManualClock();
    const provenPairs = createProvenPairs(clock);
    provenPairs.proven(address, 'a');
    clock.advance(day - 1);
    expect(provenPairs.take(address, 'a')).toBeDefined();
    provenPairs.proven(address, 'a');
    clock.advance(day - 1);
    expect(provenPairs.take(address, 'a')).toBeDefined();
    clock.advance(1);
    expect(provenPairs.take(address, 'a')).toBeUndefined();
  });
  test('is forgotten, the one unused for longest first, when there are too many', () => {
    const provenPairs = createProvenPairs(createManualClock(), 2);
    for (const node of ['a', 'b', 'c']) provenPairs.proven(address, node);
    expect(provenPairs.take(address, 'a')).toBeUndefined();
    expect(provenPairs.take(address, 'b')).toBeDefined();
    expect(provenPairs.take(address, 'c')).toBeDefined();
  });
});
