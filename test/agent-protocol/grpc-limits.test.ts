/** Limits of the gRPC server: message size, streams per connection, methods. Bytes of strangers are in `../fuzz`. */
import { status } from '@grpc/grpc-js';
import { once } from 'node:events';
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AgentServiceService } from '../../src/gen/svc/control/v1/agent_service.js';
import { SecureAgentServiceService } from '../../src/gen/svc/control/v1/secure_agent_service.js';
import { framedMessage } from '../../src/transport/agent/grpc-messages.js';
import { startAgentFixture, type AgentFixture } from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import { codeOf, helloOf, type RawAgent } from '../support/raw-agent.js';

let fixture: AgentFixture;
let agent: RawAgent;

beforeEach(async () => {
  fixture = await startAgentFixture();
  agent = await fixture.agent();
});
afterEach(() => fixture.close());

test('a gRPC message over 66 KiB is refused with RESOURCE_EXHAUSTED, on OpenSession and on Control', async () => {
  const big = Buffer.alloc(66 * 1024 + 1);
  expect(await agent.open({ request: big })).toMatchObject({ code: status.RESOURCE_EXHAUSTED });
  const stream = await fixture.live(agent);
  stream.sendBytes(big);
  expect((await stream.status).code).toBe(status.RESOURCE_EXHAUSTED);
  await eventually(() => fixture.transport.stats().sessions).toBe(0);
  expect(fixture.telemetry.ended).toHaveLength(1);
});

test('every RPC of AgentService is answered UNIMPLEMENTED', async () => {
  for (const { path } of Object.values(AgentServiceService)) {
    expect(codeOf(await agent.unary(path, Buffer.alloc(0)))).toBe(status.UNIMPLEMENTED);
  }
});

test('a connection may carry four streams at once', async () => {
  const session = connectHttp2(`http://${fixture.transport.address}`);
  session.on('error', () => undefined);
  try {
    await once(session, 'remoteSettings');
    expect(session.remoteSettings.maxConcurrentStreams).toBe(4);
  } finally {
    session.destroy();
  }
});

test('a stream that has its status is closed after a while, although its peer keeps its half open', async () => {
  const session = connectHttp2(`http://${fixture.transport.address}`);
  session.on('error', () => undefined);
  try {
    const headers = { 'content-type': 'application/grpc', te: 'trailers' };
    const path = SecureAgentServiceService.control.path;
    const call = session.request({ ':method': 'POST', ':path': path, ...headers }, { endStream: false });
    call.on('error', () => undefined);
    call.resume();
    call.write(framedMessage(Buffer.from([0x0a, 0x7f])));
    const [answer] = (await once(call, 'response')) as [IncomingHttpHeaders];
    expect(answer['grpc-status']).toBe(String(status.INVALID_ARGUMENT));
    expect(call.closed).toBe(false);
    await eventually(() => call.closed).toBe(true);
  } finally {
    session.destroy();
  }
});

test('a connection can carry a second session beside the first, as during a rekey', async () => {
  const first = await fixture.live(agent);
  const opened = await agent.session();
  await first.beat(1);
  const second = agent.attach(opened);
  second.say(helloOf());
  await second.beat(1);
});
