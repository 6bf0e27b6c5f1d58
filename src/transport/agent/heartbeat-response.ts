/**
 * Encodes the answer to a heartbeat, the most frequent message to agents. By hand where it has no commands, which is
 * nearly always: the generated code grows a buffer for it. A test compares the bytes.
 * Implements `docs/contract/wire.md#heartbeat-and-metrics`.
 */
import type { Command } from '../../gen/svc/control/v1/command.js';
import { ServicePayload } from '../../gen/svc/control/v1/session.js';
import type { AgentIntervals } from './agent-intervals.js';
import { varintLength, writeVarint } from './frame.js';

const responseTag = (1 << 3) | 2;
const okTag = (1 << 3) | 0;
const sequenceTag = (2 << 3) | 0;
const heartbeatTag = (4 << 3) | 0;
const metricsTag = (5 << 3) | 0;

/** The bytes of a `ServicePayload`. */
export function encodeHeartbeatResponse(
  sequence: bigint,
  commands: readonly Command[],
  { heartbeatSecs, metricsSecs }: Pick<AgentIntervals, 'heartbeatSecs' | 'metricsSecs'>,
): Uint8Array {
  const exact = Number(sequence);
  if (commands.length > 0 || exact > Number.MAX_SAFE_INTEGER) {
    const intervals = { heartbeatIntervalSecs: heartbeatSecs, metricsIntervalSecs: metricsSecs };
    const value = { ok: true, ackSequence: sequence, commands, ...intervals };
    return ServicePayload.encode({ payload: { $case: 'heartbeatResponse', value } }).finish();
  }
  const length = 2 + fieldLength(exact) + fieldLength(heartbeatSecs) + fieldLength(metricsSecs);
  const bytes = Buffer.allocUnsafe(1 + varintLength(length) + length);
  bytes[0] = responseTag;
  let offset = writeVarint(bytes, 1, length);
  bytes[offset] = okTag;
  bytes[offset + 1] = 1;
  offset = writeField(bytes, offset + 2, sequenceTag, exact);
  offset = writeField(bytes, offset, heartbeatTag, heartbeatSecs);
  writeField(bytes, offset, metricsTag, metricsSecs);
  return bytes;
}

/** proto3 leaves out a zero. */
function fieldLength(value: number): number {
  return value === 0 ? 0 : 1 + varintLength(value);
}

function writeField(target: Buffer, at: number, tag: number, value: number): number {
  if (value === 0) return at;
  target[at] = tag;
  return writeVarint(target, at + 1, value);
}
