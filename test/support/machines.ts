/** Machines that join the service of a REST fixture with a join token. */
import { randomBytes } from 'node:crypto';
import { join, type JoinOutcome } from '../../src/agent/control/join.js';
import { encodeControlPsk } from '../../src/channel/noise/control-psk.js';
import type { Clock } from '../../src/kernel/clock.js';
import { parseHostPort, type HostPort } from '../../src/kernel/host-port.js';
import { createRawAgent, type RawAgent } from './raw-agent.js';

export interface Machine {
  readonly name?: string;
  /** Of a machine that repeats its request. */
  readonly requestId?: Buffer;
}

export const addressOf = (agents: string): HostPort => parseHostPort(agents)!;

/** Tries once. @param agents where agents connect: `host:port` */
export function joinOf(
  agents: string,
  clock: Clock,
  token: string,
  { name = 'machine', requestId = randomBytes(16) }: Machine = {},
): Promise<JoinOutcome> {
  return join({ endpoint: addressOf(agents), token, name, requestId, agentVersion: 'test/1', clock });
}

/** The parts of a token. */
export function partsOf(token: string): { readonly nodeId: string; readonly secret: Buffer; readonly service: Buffer } {
  const bytes = Buffer.from(token.replace('svcjoin1_', ''), 'base64url');
  const id = bytes
    .subarray(0, 16)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  return { nodeId: `join:${id}`, secret: bytes.subarray(16, 48), service: bytes.subarray(48) };
}

/** A machine whose every byte the test chooses. @param secret another one is a guess */
export function rawMachine(agents: string, clock: Clock, token: string, secret = partsOf(token).secret): RawAgent {
  const { nodeId, service } = partsOf(token);
  return createRawAgent({ ...addressOf(agents), clock }, nodeId, encodeControlPsk({ secret, servicePublic: service }));
}

/** A token of the same form. @param id UUID; by default the same */
export function tokenWith(token: string, { secret, id }: { readonly secret?: Buffer; readonly id?: string }): string {
  const { nodeId, secret: own, service } = partsOf(token);
  const bytes = Buffer.from((id ?? nodeId.slice('join:'.length)).replaceAll('-', ''), 'hex');
  return `svcjoin1_${Buffer.concat([bytes, secret ?? own, service]).toString('base64url')}`;
}
