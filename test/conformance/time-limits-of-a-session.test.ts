/** The time limits of a session in `docs/contract/agent-protocol.md#control`, in parallel. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { attach, connectAgent, enrol, hello, status, type Enrolment, type Link } from './support/agent.js';
import { createNode } from './support/resources.js';
import { startService, type Running } from './support/running.js';

let standard: Running;
/** Rekeys every 10 s. */
let rekeying: Running;
const links: Link[] = [];

beforeAll(async () => {
  [standard, rekeying] = await Promise.all([startService(), startService({ SVC_CONTROL_REKEY_INTERVAL_SECS: '10' })]);
  await standard.api.ok('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 1 });
});

afterAll(async () => {
  for (const link of links) link.close();
  await Promise.all([standard.close(), rekeying.close()]);
});

async function enrolled(at: Running): Promise<Enrolment> {
  const node = await createNode(at.api);
  return enrol(node.id, node.control_psk);
}

const newLink = (at: Running): Link => {
  const link = connectAgent(at.service.controlEndpoint);
  links.push(link);
  return link;
};

describe.concurrent('the time limits of a session', () => {
  it('end a stream without any frame after 10 s', async () => {
    const enrolment = await enrolled(standard);
    const link = newLink(standard);
    const control = link.control(await link.session(enrolment));
    const started = performance.now();
    const end = await control.ended(15_000);
    expect(performance.now() - started).toBeGreaterThan(8_000);
    expect(end.code).toBe(status.UNAUTHENTICATED);
  });

  it('end an attached session without a complete hello after 10 s with FAILED_PRECONDITION', async () => {
    const enrolment = await enrolled(standard);
    const link = newLink(standard);
    const control = link.control(await link.session(enrolment));
    control.frame(control.seal(Buffer.concat([Buffer.from([1]), Buffer.alloc(16 * 1024)])));
    const end = await control.ended(15_000);
    expect(end.code).toBe(status.FAILED_PRECONDITION);
    expect(end.close).toMatchObject({ reason: SessionCloseReason.PROTOCOL_ERROR });
  });

  it('drop a pending session after 10 s', async () => {
    const enrolment = await enrolled(standard);
    const link = newLink(standard);
    const session = await link.session(enrolment);
    await new Promise((resolve) => setTimeout(resolve, 11_000));
    const control = link.control(session);
    control.say(hello());
    expect(await control.ended()).toMatchObject({ code: status.UNAUTHENTICATED, close: undefined });
  });

  it('end a session older than 1.15 times its rekey interval with EXPIRED', async () => {
    const { link, control, session } = await attach(rekeying.service.controlEndpoint, await enrolled(rekeying));
    links.push(link);
    expect(session.grant.rekeyAfterSecs).toBe(10);
    const started = performance.now();
    const end = await control.ended(16_000);
    expect(performance.now() - started).toBeGreaterThan(10_500);
    expect(end.code).toBe(status.DEADLINE_EXCEEDED);
    expect(end.close).toMatchObject({ reason: SessionCloseReason.EXPIRED });
  });
});
