/**
 * Bytes from a stranger never end the process: requests whose stream is gone by the time they are looked at, since one
 * write delivered both, and their relatives. Each is sent to the real service, beside an agent that must stay unharmed.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { eventually as waitFor, type RunningProgram } from '../../scripts/stack/process.js';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { eventually } from '../support/eventually.js';
import {
  endHeaders,
  endStream,
  frame,
  FrameType,
  goAway,
  headerList,
  opening,
  rstStream,
  uint32,
} from '../../scripts/stack/http2-frames.js';

const openSession = '/svc.control.v1.SecureAgentService/OpenSession';
const control = '/svc.control.v1.SecureAgentService/Control';
const grpc = { 'content-type': 'application/grpc', te: 'trailers' };

const headers = (path: string, more: Readonly<Record<string, string>> = grpc): Buffer =>
  headerList({ ':method': 'POST', ':scheme': 'http', ':authority': 'a', ':path': path, ...more });
const request = (path: string, more?: Readonly<Record<string, string>>, stream = 1, flags = 0): Buffer =>
  frame(FrameType.headers, endHeaders | flags, stream, headers(path, more));
const data = (bytes: number, stream = 1, flags = 0): Buffer =>
  frame(FrameType.data, flags, stream, Buffer.alloc(bytes));

/** What follows the opening, in one write unless it is a list of writes. */
const attacks: readonly (readonly [string, readonly Buffer[]])[] = [
  ['an unknown path and its reset', [Buffer.concat([request('/x', {}), rstStream(1)])]],
  ['an unknown path with gRPC content and its reset', [Buffer.concat([request('/x'), rstStream(1)])]],
  [
    'another content type and its reset',
    [Buffer.concat([request('/x', { 'content-type': 'text/plain' }), rstStream(1)])],
  ],
  ['OpenSession of another content type and its reset', [Buffer.concat([request(openSession, {}), rstStream(1)])]],
  ['OpenSession and its reset', [Buffer.concat([request(openSession), rstStream(1)])]],
  ['OpenSession, half a message and its reset', [Buffer.concat([request(openSession), data(3), rstStream(1)])]],
  ['OpenSession that is closed and reset', [Buffer.concat([request(openSession, grpc, 1, endStream), rstStream(1)])]],
  ['Control and its reset', [Buffer.concat([request(control), rstStream(1)])]],
  ['Control, data and its reset', [Buffer.concat([request(control), data(100), rstStream(1)])]],
  ['Control that is closed at once', [request(control, grpc, 1, endStream)]],
  ['an unknown path and a GOAWAY', [Buffer.concat([request('/x'), goAway()])]],
  ['an unknown path, a reset without error and a GOAWAY', [Buffer.concat([request('/x'), rstStream(1, 0), goAway()])]],
  ['a reset before its headers end', [Buffer.concat([frame(FrameType.headers, 0, 1, headers('/x')), rstStream(1)])]],
  [
    'headers in two frames and a reset',
    [
      Buffer.concat([
        frame(FrameType.headers, 0, 1, headers('/x').subarray(0, 10)),
        frame(FrameType.continuation, endHeaders, 1, headers('/x').subarray(10)),
        rstStream(1),
      ]),
    ],
  ],
  ['a reset of a stream that was never opened', [rstStream(1)]],
  ['four streams and their resets', [Buffer.concat([1, 3, 5, 7].flatMap((n) => [request('/x', {}, n), rstStream(n)]))]],
  [
    'more streams than allowed and their resets',
    [Buffer.concat(Array.from({ length: 40 }, (_, n) => [request('/x', {}, 2 * n + 1), rstStream(2 * n + 1)]).flat())],
  ],
  ['data on a stream that is reset', [Buffer.concat([request('/x', {}), rstStream(1), data(10), data(10)])]],
  [
    'a window update of zero',
    [Buffer.concat([request('/x', {}), frame(FrameType.windowUpdate, 0, 1, uint32(0)), rstStream(1)])],
  ],
  [
    'a stream that depends on itself',
    [Buffer.concat([request('/x', {}), frame(FrameType.priority, 0, 1, Buffer.from([0, 0, 0, 1, 0]))])],
  ],
  [
    'a GET and its reset',
    [
      Buffer.concat([
        frame(
          FrameType.headers,
          endHeaders | endStream,
          1,
          headerList({ ':method': 'GET', ':scheme': 'http', ':authority': 'a', ':path': '/x' }),
        ),
        rstStream(1),
      ]),
    ],
  ],
  [
    'no path at all and a reset',
    [Buffer.concat([frame(FrameType.headers, endHeaders, 1, headerList({ ':method': 'POST' })), rstStream(1)])],
  ],
  ['an unknown path whose reset comes a moment later', [request('/x', {}), rstStream(1)]],
];

describe('a stranger who knows HTTP/2', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hostile-'));
  let service: ServiceProcess;
  let admin: RestClient;
  let agent: RunningProgram;
  let nodePath: string;
  beforeAll(async () => {
    service = await prepareService({ dataDir: join(folder, 'data') });
    await service.start();
    admin = await service.admin();
    const node = await admin.call<{ id: string; control_psk: string }>('POST', '/api/nodes', { name: 'good' });
    nodePath = `/api/nodes/${node.id}`;
    const { controlEndpoint } = service;
    agent = startAgentProcess({ nodeId: node.id, controlPsk: node.control_psk, controlEndpoint });
    await waitFor('the agent is online', async () =>
      (await admin.call<{ status: string }>('GET', nodePath)).status === 'online' ? true : undefined,
    );
  });
  afterAll(async () => {
    await agent.stop();
    await service.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Sends the writes on a connection of their own and waits until the service has answered or closed it. */
  async function send(writes: readonly Buffer[]): Promise<void> {
    const { hostname, port } = new URL(service.controlEndpoint);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    const answered = Promise.race([once(socket, 'data'), once(socket, 'close')]);
    const [first = Buffer.alloc(0), ...later] = writes;
    socket.write(Buffer.concat([opening, first]));
    await Promise.race([answered, delay(2_000)]);
    for (const write of later) socket.write(write);
    // The process would end in the turn that reads the bytes: one more round trip through it comes after that.
    await fetch(`${service.url}/healthz`).catch(() => undefined);
    socket.destroy();
  }

  it('sends no more than 112 bytes for the shortest of these', () => {
    const [[, [bytes]]] = attacks as unknown as [[string, [Buffer]]];
    expect(opening.length + bytes.length).toBeLessThanOrEqual(112);
  });

  it.each(attacks)('does not end the process with %s', async (_, writes) => {
    for (let round = 0; round < 5; round += 1) await send(writes);
    expect(service.program().exited(), service.program().output().slice(-2_000)).toBe(false);
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    // The guard sees it: nothing is thrown that the last resort of the process would have to survive.
    expect(service.program().output()).not.toContain('stream that has ended');
  });

  it('leaves the session of a good agent as it was', async () => {
    expect(agent.output().split('connected to the service')).toHaveLength(2);
    const { generation } = await admin.call<{ generation: number }>('POST', `${nodePath}/config`);
    await eventually(
      async () => (await admin.call<{ applied_generation: number | null }>('GET', nodePath)).applied_generation,
    ).toBe(generation);
  });
});
