/** The wire keeps the field numbers of `docs/contract/service-specification.txt`, and tells "not reported" from 0. */
import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire';
import { describe, expect, it } from 'vitest';
import { ListenerPolicy } from '../../src/gen/svc/control/v1/gateway.js';
import { Command } from '../../src/gen/svc/control/v1/command.js';
import {
  HeartbeatRequest,
  HeartbeatResponse,
  LinkMetric,
  RuntimeListener,
  RuntimeRoute,
} from '../../src/gen/svc/control/v1/heartbeat.js';
import { SecureAgentServiceService } from '../../src/gen/svc/control/v1/secure_agent_service.js';
import { AgentServiceService } from '../../src/gen/svc/control/v1/agent_service.js';

/** The field numbers of an encoded message, in order. */
function numbersIn(bytes: Uint8Array): readonly number[] {
  const reader = new BinaryReader(bytes);
  const numbers: number[] = [];
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    reader.skip(type, number);
    numbers.push(number);
  }
  return numbers;
}

const upTo = (last: number): readonly number[] => Array.from({ length: last }, (_, index) => index + 1);

describe('the field numbers and names of the specification are those of', () => {
  it('HeartbeatRequest', () => {
    const bytes = new BinaryWriter()
      .uint32(0x0a)
      .string('node-1')
      .uint32(0x10)
      .uint64(7n)
      .uint32(0x1a)
      .fork()
      .uint32(0x08)
      .int64(1_700_000_000n)
      .uint32(0x10)
      .int32(5)
      .join()
      .uint32(0x21)
      .double(0.25)
      .uint32(0x29)
      .double(0.5)
      .uint32(0x30)
      .uint64(90n)
      .uint32(0x3a)
      .fork()
      .join()
      .uint32(0x42)
      .fork()
      .join()
      .finish();
    expect(HeartbeatRequest.decode(bytes)).toEqual({
      nodeId: 'node-1',
      sequence: 7n,
      timestamp: { seconds: 1_700_000_000n, nanos: 5 },
      cpuUsage: 0.25,
      memoryUsage: 0.5,
      uptimeSeconds: 90n,
      linkMetrics: [LinkMetric.create()],
      runtimeListeners: [RuntimeListener.create()],
    });
  });

  it('RuntimeListener and RuntimeRoute', () => {
    const route = new BinaryWriter();
    for (const number of upTo(7)) route.uint32((number << 3) | 2).string(`r${number}`);
    const writer = new BinaryWriter()
      .uint32(0x0a)
      .string('tcp')
      .uint32(0x12)
      .string('::')
      .uint32(0x18)
      .int32(443)
      .uint32(0x22)
      .string('running')
      .uint32(0x2a)
      .bytes(route.finish());
    for (const number of [6, 7, 8, 9, 10]) writer.uint32(number << 3).uint64(BigInt(number));
    expect(RuntimeListener.decode(writer.finish())).toEqual({
      transport: 'tcp',
      listenAddr: '::',
      listenPort: 443,
      state: 'running',
      routes: [
        {
          service: 'r1',
          payload: 'r2',
          outer: 'r3',
          security: 'r4',
          matchKind: 'r5',
          matchValue: 'r6',
          nextHop: 'r7',
          state: '',
        },
      ],
      bytesIn: 6n,
      bytesOut: 7n,
      activeSessions: 8n,
      totalSessions: 9n,
      errorSessions: 10n,
    });
  });

  it('ListenerPolicy', () => {
    const policy = { transport: 'udp', listenAddr: '0.0.0.0', listenPort: 53, priorityOrder: ['raw', 'noise'] };
    expect(numbersIn(ListenerPolicy.encode(policy).finish())).toEqual([1, 2, 3, 4, 4]);
  });
});

it('a counter reported as 0 differs from one that was not reported', () => {
  const reported = RuntimeListener.create({ bytesIn: 0n });
  const read = RuntimeListener.decode(RuntimeListener.encode(reported).finish());
  expect(read.bytesIn).toBe(0n);
  expect(read.bytesOut).toBeUndefined();
  const link = LinkMetric.decode(LinkMetric.encode(LinkMetric.create({ lossRatio: 0 })).finish());
  expect(link.lossRatio).toBe(0);
  expect(link.rttMs).toBeUndefined();
});

it('64-bit numbers above 2^53 are decoded exactly', () => {
  const huge = 2n ** 64n - 1n;
  expect(
    HeartbeatResponse.decode(HeartbeatResponse.encode(HeartbeatResponse.create({ ackSequence: huge })).finish())
      .ackSequence,
  ).toBe(huge);
});

it('commands have the names of the specification, and one of a later release is decoded as its number', () => {
  expect(Object.keys(Command)).toEqual(['UNSPECIFIED', 'RELOAD_CONFIG', 'RESTART_PINGORA', 'RUN_DIAGNOSTICS']);
  const later = new BinaryWriter().uint32(0x1a).fork().int32(1).int32(77).join().finish();
  expect(HeartbeatResponse.decode(later).commands).toEqual([Command.RELOAD_CONFIG, 77]);
});

it('a truncated message does not parse', () => {
  const whole = RuntimeRoute.encode(RuntimeRoute.create({ service: 'a-service' })).finish();
  expect(() => RuntimeRoute.decode(whole.subarray(0, whole.length - 1))).toThrow(RangeError);
});

it('both services have the RPCs of the specification', () => {
  const kinds = (
    service: Record<string, { path: string; requestStream: boolean; responseStream: boolean }>,
  ): readonly string[] =>
    Object.values(service).map(
      (rpc) => `${rpc.path} ${rpc.requestStream ? 'stream' : 'unary'} ${rpc.responseStream ? 'stream' : 'unary'}`,
    );
  expect(kinds(SecureAgentServiceService)).toEqual([
    '/svc.control.v1.SecureAgentService/OpenSession unary unary',
    '/svc.control.v1.SecureAgentService/Control stream stream',
  ]);
  expect(kinds(AgentServiceService)).toEqual([
    '/svc.control.v1.AgentService/Register unary unary',
    '/svc.control.v1.AgentService/Heartbeat unary unary',
    '/svc.control.v1.AgentService/StreamConfig unary stream',
    '/svc.control.v1.AgentService/ReportMetrics unary unary',
  ]);
});
