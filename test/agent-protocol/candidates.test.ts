/** Sessions under a candidate of a PSK, at the transport (`docs/contract/rollouts.md#guided-rotation`). */
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type * as handshake from '../../src/channel/noise/handshake.js';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { GrpcStatus } from '../../src/kernel/errors.js';
import { startAgentFixture, type AgentFixture } from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import {
  configRequestOf,
  createRawAgent,
  heartbeatOf,
  helloOf,
  isRefused,
  type RawAgent,
} from '../support/raw-agent.js';

const tries = vi.hoisted(() => ({ made: 0 }));
vi.mock('../../src/channel/noise/handshake.js', async (original) => {
  const real = await original<typeof handshake>();
  const respond: typeof handshake.respond = (party, message) => {
    tries.made += 1;
    return real.respond(party, message);
  };
  return { ...real, respond };
});

let fixture: AgentFixture;
const agents: RawAgent[] = [];
const agentOf = (psk: string, nodeId = 'node-1'): RawAgent => {
  const agent = createRawAgent(fixture, nodeId, psk);
  agents.push(agent);
  return agent;
};
beforeEach(async () => {
  fixture = await startAgentFixture();
});
afterEach(async () => {
  for (const agent of agents.splice(0)) agent.disconnect();
  await fixture.close();
});

test('every refused handshake costs the same tries, whichever node it names, with a candidate anywhere and without', async () => {
  const old = await fixture.issue('node-1');
  await fixture.issue('node-2');
  const refusedAt = async (nodeId: string): Promise<number> => {
    tries.made = 0;
    const garbage = { handshake: randomBytes(96) };
    expect(await agentOf(old, nodeId).open(garbage)).toMatchObject({ code: GrpcStatus.UNAUTHENTICATED });
    return tries.made;
  };
  const each = async (): Promise<readonly number[]> => {
    const made: number[] = [];
    for (const nodeId of ['node-1', 'node-2', 'nobody']) made.push(await refusedAt(nodeId));
    return made;
  };
  expect(await each()).toEqual([1, 1, 1]);
  fixture.issueCandidate('node-1');
  expect(await each()).toEqual([2, 2, 2]);
});

describe('a session under a candidate', () => {
  test('is heard only once its PSK is the node’s, and ends those of the other PSK', async () => {
    const before = await agentOf(await fixture.issue('node-1')).connect();
    await eventually(() => fixture.telemetry.opened.length).toBe(1);
    const candidate = fixture.issueCandidate('node-1');
    let prove: () => void = () => undefined;
    fixture.proof = new Promise((resolve) => (prove = resolve));
    const stream = await agentOf(candidate).connect();
    stream.say(configRequestOf(0n));
    // More than are held while a change is pushed to many.
    for (let beat = 1; beat <= 20; beat += 1) stream.say(heartbeatOf(beat, { nodeId: 'node-1' }));
    // The old session is still the live one, and is answered.
    await before.beat(1);
    expect([stream.heard, fixture.telemetry.opened.length, fixture.nodeSessions.at(-1)?.requests]).toEqual([[], 1, []]);
    prove();
    await eventually(() => stream.heard.length).toBe(21);
    expect(before.closeHeard()?.reason).toBe(SessionCloseReason.REVOKED);
    expect(fixture.telemetry.opened).toHaveLength(2);
  });

  test('that is none any more is revoked, and the node’s session stays', async () => {
    const old = await fixture.issue('node-1');
    const before = await agentOf(old).connect();
    const agent = agentOf(fixture.issueCandidate('node-1'));
    const opened = await agent.session();
    fixture.dropCandidate('node-1');
    const stream = agent.attach(opened);
    stream.say(helloOf());
    expect((await stream.status).code).toBe(GrpcStatus.PERMISSION_DENIED);
    expect(stream.closeHeard()?.reason).toBe(SessionCloseReason.REVOKED);
    await before.beat(1);
    expect(isRefused(await agentOf(old).open())).toBe(false);
  });

  test('whose agent leaves before the proof never becomes the live one', async () => {
    await fixture.issue('node-1');
    let prove: () => void = () => undefined;
    fixture.proof = new Promise((resolve) => (prove = resolve));
    const agent = agentOf(fixture.issueCandidate('node-1'));
    const { call } = await agent.connect();
    await eventually(() => fixture.transport.stats().sessions).toBe(1);
    call.cancel();
    await eventually(() => fixture.transport.stats().sessions).toBe(0);
    prove();
    await fixture.proof;
    await eventually(() => fixture.transport.stats().pending).toBe(0);
    expect(fixture.telemetry.opened).toEqual([]);
  });
});
