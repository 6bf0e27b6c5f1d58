/**
 * The parts of the wire that the service no longer uses: AgentService, split configuration updates, and the health check of
 * an upstream. Served by a server of this test, read by its client, and byte for byte what `proto/` says. That the service
 * answers AgentService with UNIMPLEMENTED is in `../agent-protocol/grpc-limits.test.ts`.
 * `docs/contract/agent-protocol.md#configuration`, `docs/contract/wire.md#services`
 */
import { Client, Server, ServerCredentials, credentials, type ServiceError } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  AgentServiceClient,
  AgentServiceService,
  type AgentServiceServer,
} from '../../src/gen/svc/control/v1/agent_service.js';
import { Command } from '../../src/gen/svc/control/v1/command.js';
import { ConfigUpdate, type ConfigRequest } from '../../src/gen/svc/control/v1/config.js';
import { HeartbeatRequest } from '../../src/gen/svc/control/v1/heartbeat.js';
import { MetricsReport } from '../../src/gen/svc/control/v1/metrics.js';
import { AgentHello } from '../../src/gen/svc/control/v1/session.js';
import { decodeProto, encodeProto } from '../support/proto-messages.js';

/** What a fleet of an earlier time was sent: the parts of a snapshot one by one. */
const updates: readonly ConfigUpdate[] = [
  ConfigUpdate.fromPartial({
    update: {
      $case: 'gatewayConfig',
      value: {
        upstreamClusters: [
          { name: 'web', endpoints: ['192.0.2.1:80'], enabled: true, healthCheck: { intervalMs: 5_000, path: '/up' } },
        ],
        tcpProxyRules: [{ ruleId: 'c/0', listenAddr: '0.0.0.0', listenPort: 443, serverNames: ['a.example'] }],
        httpProxyRules: [{ ruleId: 'r/0', listenAddr: '::', listenPort: 80, host: 'a.example', pathPrefix: '/' }],
        listenerPolicies: [{ transport: 'tcp', listenAddr: '::', listenPort: 443, priorityOrder: ['raw', 'tls'] }],
      },
    },
  }),
  ConfigUpdate.fromPartial({ update: { $case: 'nodeConfig', value: { multiplex: true, multiplexPort: 8443 } } }),
  ConfigUpdate.fromPartial({
    update: {
      $case: 'l3Config',
      value: {
        rules: [
          {
            ruleId: 'n/7/listener',
            networkId: '7',
            enabled: true,
            routes: ['10.0.0.0/8'],
            tun: { interfaceName: 'svc7', addressFamily: 1, prefixes: ['10.9.0.1/24'], mtu: 1400 },
            datagramContextId: 7,
          },
        ],
      },
    },
  }),
  ConfigUpdate.fromPartial({ update: { $case: 'unchanged', value: { generation: 3n } } }),
];

describe('a split update', () => {
  it.each(updates.map((update) => [update.update!.$case, update] as const))(
    '%s has the bytes that proto/ asks for, and comes back as it was',
    (_name, update) => {
      const bytes = ConfigUpdate.encode(update).finish();
      expect(Buffer.from(bytes)).toEqual(Buffer.from(encodeProto('ConfigUpdate', update)));
      expect(ConfigUpdate.decode(bytes)).toEqual(update);
      expect(decodeProto('ConfigUpdate', bytes)).toEqual(update);
    },
  );
});

describe('AgentService, served by a test', () => {
  let server: Server;
  let client: AgentServiceClient;
  const said: unknown[] = [];

  beforeAll(async () => {
    const handlers: AgentServiceServer = {
      register(call, answer) {
        said.push(call.request);
        answer(null, {});
      },
      heartbeat(call, answer) {
        said.push(call.request);
        answer(null, {
          ok: true,
          ackSequence: call.request.sequence,
          commands: [Command.RESTART_PINGORA],
          heartbeatIntervalSecs: 10,
          metricsIntervalSecs: 60,
        });
      },
      streamConfig(call) {
        said.push(call.request);
        for (const update of updates) call.write(update);
        call.end();
      },
      reportMetrics(call, answer) {
        said.push(call.request);
        answer(null, {});
      },
    };
    server = new Server();
    server.addService(AgentServiceService, handlers);
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    client = new AgentServiceClient(`127.0.0.1:${port}`, credentials.createInsecure());
  });
  afterAll(() => {
    client.close();
    server.forceShutdown();
  });

  const answerOf = <T>(call: (done: (error: ServiceError | null, response: T) => void) => unknown): Promise<T> =>
    new Promise((resolve, reject) => {
      call((error, response) => (error === null ? resolve(response) : reject(error)));
    });

  it('registers an agent, answers its heartbeats and takes its metrics', async () => {
    expect(client).toBeInstanceOf(Client);
    const hello = AgentHello.fromPartial({ nodeId: 'n', agentVersion: 'old/1', detectedAddresses: ['10.0.0.1'] });
    expect(await answerOf((done) => client.register(hello, done))).toEqual({});
    const beat = HeartbeatRequest.fromPartial({ nodeId: 'n', sequence: 4n, cpuUsage: 0.5 });
    expect(await answerOf((done) => client.heartbeat(beat, done))).toMatchObject({
      ok: true,
      ackSequence: 4n,
      commands: [Command.RESTART_PINGORA],
    });
    const metrics = MetricsReport.fromPartial({ sequence: 1n, connections: { accepted: 9n } });
    expect(await answerOf((done) => client.reportMetrics(metrics, done))).toEqual({});
    expect(said.splice(0)).toEqual([hello, beat, metrics]);
  });

  it('streams split updates, which its client reads one by one', async () => {
    const request: ConfigRequest = { nodeId: 'n', configVersion: 2n, checksum: Buffer.alloc(0) };
    const read: ConfigUpdate[] = [];
    for await (const update of client.streamConfig(request)) read.push(update as ConfigUpdate);
    expect(read).toEqual(updates);
    expect(said.splice(0)).toEqual([request]);
  });
});
