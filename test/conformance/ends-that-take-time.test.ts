/** `docs/contract/agent-protocol.md`, the ends of a session that need waiting for, side by side. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AgentPayload, SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { attach, connectAgent, enrol, heartbeat, hello, status } from './support/agent.js';
import type { Enrolment, Link } from './support/agent.js';
import { createNode } from './support/resources.js';
import { startService } from './support/running.js';
import type { Running } from './support/running.js';

let slow: Running;
let quick: Running;
const links: Link[] = [];

beforeAll(async () => {
  [slow, quick] = await Promise.all([startService(), startService({ SVC_CONTROL_REKEY_INTERVAL_SECS: '10' })]);
  await slow.api.ok('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 1 });
}, 60_000);

afterAll(async () => {
  for (const link of links) link.close();
  await Promise.all([slow.close(), quick.close()]);
}, 40_000);

async function enrolled(at: Running): Promise<Enrolment> {
  const node = await createNode(at.api);
  return enrol(node.id, node.control_psk);
}

const newLink = (at: Running): Link => {
  const link = connectAgent(at.service.controlEndpoint);
  links.push(link);
  return link;
};

describe.concurrent('after some time', () => {
  it('a stream without hello ends FAILED_PRECONDITION with a close, or bare while it has no session', async () => {
    const enrolment = await enrolled(slow);
    const link = newLink(slow);
    const control = link.control(await link.session(enrolment));
    const started = performance.now();
    const end = await control.ended(15_000);
    expect(performance.now() - started).toBeGreaterThan(8_000);
    expect([status.FAILED_PRECONDITION, status.UNAUTHENTICATED]).toContain(end.code);
  }, 40_000);

  it('a session that is attached and says no whole hello in 10 s ends FAILED_PRECONDITION', async () => {
    const enrolment = await enrolled(slow);
    const link = newLink(slow);
    const control = link.control(await link.session(enrolment));
    control.frame(control.seal(Buffer.concat([Buffer.from([1]), Buffer.alloc(16 * 1024)])));
    const end = await control.ended(15_000);
    expect(end.code).toBe(status.FAILED_PRECONDITION);
    expect(end.close).toMatchObject({ reason: SessionCloseReason.PROTOCOL_ERROR });
  }, 40_000);

  it('a pending session is dropped after 10 s', async () => {
    const enrolment = await enrolled(slow);
    const link = newLink(slow);
    const session = await link.session(enrolment);
    await new Promise((resolve) => setTimeout(resolve, 11_000));
    const control = link.control(session);
    control.say(hello());
    expect(await control.ended()).toMatchObject({ code: status.UNAUTHENTICATED, close: undefined });
  }, 40_000);

  it('a message that is not complete in 30 s is a protocol error, and silence meanwhile is not IDLE', async () => {
    const { link, control } = await attach(slow.service.controlEndpoint, await enrolled(slow));
    links.push(link);
    const encoded = AgentPayload.encode({ payload: heartbeat(1n) }).finish();
    control.frame(control.seal(Buffer.concat([Buffer.from([1]), encoded, Buffer.alloc(17_000)])));
    const started = performance.now();
    const end = await control.ended(36_000);
    expect(performance.now() - started).toBeGreaterThan(28_000);
    expect(end.code).toBe(status.INVALID_ARGUMENT);
    expect(end.close).toMatchObject({ reason: SessionCloseReason.PROTOCOL_ERROR });
  }, 45_000);

  it('a session older than 1.15 times its interval is EXPIRED', async () => {
    const { link, control, session } = await attach(quick.service.controlEndpoint, await enrolled(quick));
    links.push(link);
    expect(session.grant.rekeyAfterSecs).toBe(10);
    const started = performance.now();
    const end = await control.ended(16_000);
    expect(performance.now() - started).toBeGreaterThan(10_500);
    expect(end.code).toBe(status.DEADLINE_EXCEEDED);
    expect(end.close).toMatchObject({ reason: SessionCloseReason.EXPIRED });
  }, 40_000);
});
