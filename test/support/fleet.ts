/**
 * Commands, the log and given/when/then for tests of the fleet. Not the gateway: nothing is stored, and decided events are
 * applied at once, after conversion to JSON and back as in the log.
 */
import { expect } from 'vitest';
import type { Hop } from '../../src/domain/chain/chain.js';
import { noFields, type CertificateDetails } from '../../src/domain/credential/credential.js';
import { applyCommand } from '../../src/domain/fleet/apply.js';
import { decideFleet } from '../../src/domain/fleet/decide.js';
import type { FleetCommand, FleetEvent } from '../../src/domain/fleet/resources.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { policyId, type PolicyDefinition, type PriorityLabel } from '../../src/domain/listener-policy/policy.js';
import type { NodeCommand } from '../../src/domain/node/node.js';
import type { RouteHop } from '../../src/domain/route/route.js';
import type { IfMatch, Refusal, RefusalCode } from '../../src/domain/resource/refusal.js';
import type { SealedSecret } from '../../src/domain/secret/sealed.js';
import type { UpdateConnectivity } from '../../src/domain/settings/settings.js';
import { readCommand, schemaVersions } from '../../src/domain/log/upcast.js';
import {
  streams,
  type Actor,
  type IdempotencyMark,
  type RecordedCommand,
  type RecordedEvent,
} from '../../src/kernel/event.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import type { JsonObject } from '../../src/kernel/json.js';

export const nodeId = (name: string): string => uuidFromName(`node ${name}`);
export const upstreamId = (name: string): string => uuidFromName(`upstream ${name}`);
export const chainId = (name: string): string => uuidFromName(`chain ${name}`);
export const credentialId = (name: string): string => uuidFromName(`credential ${name}`);
export const routeId = (name: string): string => uuidFromName(`route ${name}`);

export const sealed: SealedSecret = { alg: 'xc20p', key_id: 'key-1', nonce: 'bm9uY2U', ct: 'c2VhbGVk' };
export const upstreamTls = { server_name: 'up.example', spki_pins_sha256: [`${'A'.repeat(43)}=`] };

type Of<C extends { readonly type: string }, T extends C['type']> = Extract<C, { readonly type: T }>;
/** The fields of a command, without type and id. */
type Fields<C> = Partial<Omit<C, 'type' | 'id'>>;

export function createNode(
  name: string,
  fields: Fields<Of<NodeCommand, 'CreateNode'>> = {},
): Of<NodeCommand, 'CreateNode'> {
  return {
    type: 'CreateNode',
    id: nodeId(name),
    name,
    description: null,
    address: `${name.toLowerCase().replaceAll(/[^a-z0-9]/g, 'x')}.example`,
    labels: {},
    psk: null,
    ...fields,
  };
}

export function updateNode(name: string, fields: Fields<Of<NodeCommand, 'UpdateNode'>>): FleetCommand {
  return { type: 'UpdateNode', id: nodeId(name), ifMatch: undefined, ...fields };
}

export function createUpstream(name: string, fields: Fields<Of<FleetCommand, 'CreateUpstream'>> = {}): FleetCommand {
  return {
    type: 'CreateUpstream',
    id: upstreamId(name),
    name,
    endpoint: `${name}.example:443`,
    server_names: [],
    health_check_interval_ms: 10_000,
    enabled: true,
    tls: null,
    reality: null,
    ...fields,
  };
}

export function updateUpstream(name: string, fields: Fields<Of<FleetCommand, 'UpdateUpstream'>>): FleetCommand {
  return { type: 'UpdateUpstream', id: upstreamId(name), ifMatch: undefined, ...fields };
}

/** A RAW hop on a node, by default over tcp. */
export function hop(node: string, listen_port: number, fields: Partial<Hop> = {}): Hop {
  return { node_id: nodeId(node), listen_addr: '0.0.0.0', listen_port, outer: 'tcp', security: 'raw', ...fields };
}

export const udpHop = (node: string, port: number, fields: Partial<Hop> = {}): Hop =>
  hop(node, port, { outer: 'udp', ...fields });

export function createChain(
  name: string,
  hops: readonly Hop[],
  fields: Fields<Of<FleetCommand, 'CreateChain'>> = {},
): Of<FleetCommand, 'CreateChain'> {
  const payload = hops[0]?.outer === 'tcp' || hops[0]?.outer === 'quic' ? 'tcp' : 'udp';
  const target = { endpoint: '192.0.2.1:80' };
  return {
    type: 'CreateChain',
    id: chainId(name),
    name,
    description: null,
    enabled: true,
    payload,
    hops,
    target,
    ...fields,
  };
}

export function updateChain(name: string, fields: Fields<Of<FleetCommand, 'UpdateChain'>>): FleetCommand {
  return { type: 'UpdateChain', id: chainId(name), ifMatch: undefined, ...fields };
}

export function deployChain(name: string, ifMatch?: readonly number[]): FleetCommand {
  return { type: 'DeployChain', id: chainId(name), ifMatch };
}

export function routeHop(node: string, listen_port: number, listen_addr = '0.0.0.0'): RouteHop {
  return { node_id: nodeId(node), listen_addr, listen_port };
}

/** A route for `<name>.example`. */
export function createRoute(
  name: string,
  hops: readonly RouteHop[],
  fields: Fields<Of<FleetCommand, 'CreateRoute'>> = {},
): Of<FleetCommand, 'CreateRoute'> {
  return {
    type: 'CreateRoute',
    id: routeId(name),
    name,
    host: `${name}.example`,
    path_prefix: '/',
    enabled: true,
    hops,
    backend: '192.0.2.8:8080',
    ...fields,
  };
}

export function updateRoute(name: string, fields: Fields<Of<FleetCommand, 'UpdateRoute'>>): FleetCommand {
  return { type: 'UpdateRoute', id: routeId(name), ifMatch: undefined, ...fields };
}

export const deleteRoute = (name: string): FleetCommand => ({
  type: 'DeleteRoute',
  id: routeId(name),
  ifMatch: undefined,
});

type CreateCredential = Of<FleetCommand, 'CreateCredential'>;

/** A sealed key that is another one for each name. */
export const sealedKey = (name: string): SealedSecret => ({ ...sealed, key_id: `key of ${name}` });

/** 32 bytes that depend on the name. */
const bytesOf = (name: string): Buffer => Buffer.from(name.padEnd(32, '.')).subarray(0, 32);
/** A public key as an x25519 credential has it. */
export const publicKey = (name: string): string => bytesOf(name).toString('base64url');
/** A pin as a certificate has it. */
export const pin = (name: string): string => bytesOf(name).toString('base64');

/** A certificate with the key of this name. */
export function certificate(key: string, fields: Partial<CertificateDetails> = {}): CertificateDetails {
  return {
    subject: 'CN=test',
    issuer: 'CN=issuer',
    subject_alt_names: ['a.example'],
    not_before: '2024-01-01T00:00:00.000Z',
    not_after: '2027-01-01T00:00:00.000Z',
    serial_number: '01',
    fingerprint_sha256: 'ab'.repeat(32),
    spki_sha256: pin(key),
    self_signed: false,
    ...fields,
  };
}

/** The key pair of this name. */
export const x25519Keys = (name: string) => ({ public_key: publicKey(name), private_key: sealedKey(name) });

export function createX25519(name: string, fields: Fields<CreateCredential> = {}): CreateCredential {
  return {
    type: 'CreateCredential',
    id: credentialId(name),
    name,
    key_type: 'x25519',
    ...noFields,
    ...x25519Keys(name),
    ...fields,
  };
}

/** A REALITY identity over the x25519 credential of this name. */
export function createReality(name: string, keys: string, fields: Fields<CreateCredential> = {}): CreateCredential {
  return {
    type: 'CreateCredential',
    id: credentialId(name),
    name,
    key_type: 'reality',
    ...noFields,
    x25519_credential_id: credentialId(keys),
    server_names: ['a.example', 'b.example'],
    short_ids: ['0123'],
    target_host: 'target.example',
    target_port: 443,
    ...fields,
  };
}

/** A certificate for `a.example`, with a key of the credential's name. */
export function createTlsCert(name: string, fields: Fields<CreateCredential> = {}): CreateCredential {
  return {
    type: 'CreateCredential',
    id: credentialId(name),
    name,
    key_type: 'tls_cert',
    ...noFields,
    ...rotatedTo(name),
    ...fields,
  };
}

/** The fields of an update to a certificate with the key of this name. */
export function rotatedTo(key: string, fields: Partial<CertificateDetails> = {}) {
  return {
    private_key: sealedKey(key),
    certificate_pem: `PEM of ${key}`,
    certificate: certificate(key, fields),
  };
}

export function updateCredential(name: string, fields: Fields<Of<FleetCommand, 'UpdateCredential'>>): FleetCommand {
  return { type: 'UpdateCredential', id: credentialId(name), ifMatch: undefined, ...fields };
}

export const deleteCredential = (name: string): FleetCommand => ({
  type: 'DeleteCredential',
  id: credentialId(name),
  ifMatch: undefined,
});

/** Ends the overlap that a credential has. */
export const endOverlap =
  (name: string) =>
  (fleet: Fleet): FleetCommand => {
    const id = credentialId(name);
    return { type: 'EndCredentialOverlap', id, ends_at: fleet.tables.credential.get(id)?.overlap?.ends_at ?? '' };
  };

export const policyKeyOf = (node: string, listen_port: number, fields: Partial<PolicyDefinition> = {}) =>
  ({ node_id: nodeId(node), transport: 'tcp', listen_addr: '0.0.0.0', listen_port, ...fields }) as const;

export function savePolicy(
  node: string,
  listen_port: number,
  priority_order: readonly PriorityLabel[],
  fields: Partial<PolicyDefinition> & { readonly ifMatch?: IfMatch } = {},
): FleetCommand {
  const { ifMatch, ...more } = fields;
  return { type: 'SaveListenerPolicy', ifMatch, ...policyKeyOf(node, listen_port, more), priority_order };
}

export const deletePolicy = (node: string, listen_port: number, ifMatch?: IfMatch): FleetCommand => ({
  type: 'DeleteListenerPolicy',
  ifMatch,
  ...policyKeyOf(node, listen_port),
});

/** The id of a policy on tcp and every IPv4 address. */
export const policyIdOf = (node: string, listen_port: number): string => policyId(policyKeyOf(node, listen_port));

export function settings(fields: Partial<Omit<UpdateConnectivity, 'type'>>): FleetCommand {
  return { type: 'UpdateConnectivity', ifMatch: undefined, ...fields };
}

const epoch = Date.UTC(2025, 0, 1);

export interface Recording {
  readonly idempotency?: IdempotencyMark | undefined;
  /** Milliseconds since the Unix epoch; one second per revision unless given. */
  readonly at?: number | undefined;
  readonly actor?: Actor | undefined;
  readonly revertOf?: string | undefined;
}

/** Decided events as the log returns them: as JSON, with the next revisions and growing positions. */
export function recorded(fleet: Fleet, events: readonly FleetEvent[], recording: Recording = {}): RecordedCommand {
  const first = fleet.revision.value + 1;
  const id = uuidFromName(`command ${first}`);
  const [head, ...rest] = events.map(({ type, data }, index): RecordedEvent => ({
    id: uuidFromName(`event ${first + index}`),
    stream: streams.fleet,
    type,
    data: JSON.parse(JSON.stringify(data)) as JsonObject,
    revision: first + index,
    position: (first + index + 1) * 100,
    metadata: {
      command: { id, index, count: events.length },
      actor: recording.actor ?? { type: 'system', id: 'test', name: 'test' },
      request_id: 'test',
      occurred_at: new Date(recording.at ?? epoch + first * 1000).toISOString(),
      schema_version: schemaVersions[type],
      ...(recording.revertOf === undefined ? {} : { revert_of: recording.revertOf }),
      ...(recording.idempotency === undefined ? {} : { idempotency: recording.idempotency }),
    },
  }));
  if (head === undefined) throw new RangeError('a command without events is not recorded');
  return readCommand({ stream: streams.fleet, events: [head, ...rest] });
}

export type Performed =
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'unchanged' }
  | {
      readonly kind: 'written';
      readonly events: readonly FleetEvent[];
      readonly command: RecordedCommand;
      readonly touched: ReadonlySet<string>;
    };

/** Decides a command and applies its events. */
export function perform(fleet: Fleet, command: FleetCommand, recording: Recording = {}): Performed {
  const decision = decideFleet(fleet, command);
  if (!decision.ok) return { kind: 'refused', refusal: decision.error };
  if (decision.value.length === 0) return { kind: 'unchanged' };
  const inLog = recorded(fleet, decision.value, recording);
  return { kind: 'written', events: decision.value, command: inLog, touched: applyCommand(fleet, inLog) };
}

/** Applies events as a log holds them, whoever decided them. @returns the touched nodes */
export function append(fleet: Fleet, ...events: readonly FleetEvent[]): ReadonlySet<string> {
  const touched = applyCommand(fleet, recorded(fleet, events));
  return touched;
}

/** Performs commands that must all write something. @returns the nodes that each one touched */
export function performAll(fleet: Fleet, commands: readonly FleetCommand[]): readonly ReadonlySet<string>[] {
  return commands.map((command) => {
    const performed = perform(fleet, command);
    if (performed.kind !== 'written') throw new Error(`${command.type} wrote nothing: ${JSON.stringify(performed)}`);
    return performed.touched;
  });
}

/** The fleet of a log. */
export function foldOf(log: Iterable<RecordedCommand>, fleet: Fleet = emptyFleet()): Fleet {
  for (const command of log) {
    applyCommand(fleet, readCommand(command));
  }
  return fleet;
}

export interface Scenario {
  readonly fleet: Fleet;
  when(command: FleetCommand): Outcome;
}

export interface Outcome {
  readonly performed: Performed;
  /** Expects exactly these events, in this order. */
  thenEvents(...events: readonly FleetEvent[]): Fleet;
  /** Expects that the command is accepted, whether it writes something or not. */
  thenAccepted(): Fleet;
  /** Expects that the command is accepted and writes nothing. */
  thenNothing(): void;
  /** Expects a refusal whose sentence contains all parts. */
  thenRefused(code: RefusalCode, ...parts: readonly string[]): void;
}

/** A fleet after commands, each of which must write something. */
export function given(...commands: readonly FleetCommand[]): Scenario {
  const fleet = emptyFleet();
  performAll(fleet, commands);
  return { fleet, when: (command) => outcomeOf(fleet, perform(fleet, command)) };
}

function outcomeOf(fleet: Fleet, performed: Performed): Outcome {
  return {
    performed,
    thenEvents(...events) {
      expect(performed).toMatchObject({ kind: 'written' });
      expect(performed.kind === 'written' ? performed.events : []).toEqual(events);
      return fleet;
    },
    thenAccepted() {
      expect(performed.kind === 'refused' ? performed.refusal.message : undefined).toBeUndefined();
      return fleet;
    },
    thenNothing() {
      expect(performed).toEqual({ kind: 'unchanged' });
    },
    thenRefused(code, ...parts) {
      const refusal = performed.kind === 'refused' ? performed.refusal : undefined;
      expect(refusal?.code, `${JSON.stringify(performed)} instead of a refusal`).toBe(code);
      for (const part of parts) expect(refusal?.message).toContain(part);
    },
  };
}
