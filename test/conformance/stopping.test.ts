/** What a stop does to agents (DRAINING in `docs/contract/agent-protocol.md#control`) and to requests. */
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { prepareService } from '../../scripts/stack/service.js';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { attach, configRequest, enrol, status, type Enrolment, type Link } from './support/agent.js';
import { createChain, createNode, deploy, rawHop } from './support/resources.js';
import { sharedServiceOf } from './support/running.js';

const shared = sharedServiceOf(prepareService);
const links: Link[] = [];

async function enrolled(): Promise<Enrolment> {
  const node = await createNode(shared.api);
  return enrol(node.id, node.control_psk);
}

afterEach(() => {
  for (const link of links.splice(0)) link.close();
});

describe('a service that stops', () => {
  it('does not wait for a request that never ends, and completes one that does', async () => {
    const { hostname, port, host } = new URL(shared.api.url);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    const { token } = shared.api;
    socket.write(
      `POST /api/nodes HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n` +
        'content-type: application/json\r\ncontent-length: 100\r\n\r\n{',
    );
    await new Promise((resolve) => setTimeout(resolve, 200));
    const node = await createNode(shared.api);
    const { link, control } = await attach(shared.service.controlEndpoint, enrol(node.id, node.control_psk));
    links.push(link);
    control.say(configRequest());
    await control.snapshot();
    const chain = await createChain(shared.api, { hops: [rawHop(node.id, 30_000)] });
    const waiting = deploy(shared.api, chain, '?wait=applied&timeout_ms=30000');
    await control.snapshot();
    expect(await shared.service.program().stop()).toBe(0);
    const { deployment } = await waiting;
    await shared.service.start();
    const { items } = await shared.api.ok<{ items: { id: string }[] }>('GET', `/api/l4-chains/${chain.id}/deployments`);
    expect(items.map(({ id }) => id)).toEqual([deployment.id]);
  });

  it('closes its sessions with DRAINING and a jittered retry time, exits cleanly and keeps everything', async () => {
    const enrolments = [await enrolled(), await enrolled(), await enrolled()];
    const peers = await Promise.all(enrolments.map((enrolment) => attach(shared.service.controlEndpoint, enrolment)));
    const before = [];
    for (const { link, control } of peers) {
      links.push(link);
      control.say(configRequest());
      before.push(await control.snapshot());
    }
    const stopped = shared.service.program().stop();
    const retries = [];
    for (const { control } of peers) {
      const end = await control.ended();
      expect(end.code).toBe(status.UNAVAILABLE);
      expect(end.close).toMatchObject({ reason: SessionCloseReason.DRAINING });
      retries.push(end.close!.retryAfterMs);
    }
    expect(Math.min(...retries)).toBeGreaterThan(0);
    expect(new Set(retries).size).toBeGreaterThan(1);
    expect(await stopped).toBe(0);
    await shared.service.start();
    for (const [i, enrolment] of enrolments.entries()) {
      const { link, control } = await attach(shared.service.controlEndpoint, enrolment);
      links.push(link);
      control.say(configRequest(before[i]!.generation, before[i]!.checksum));
      expect(await control.update()).toEqual({ $case: 'unchanged', value: { generation: before[i]!.generation } });
    }
  });
});
