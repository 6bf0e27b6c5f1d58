/** What the handlers of commands answer, and what becomes of new secrets. No store. */
import { X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createCredentialHandlers, keyMaterial } from '../../src/commands/credentials.js';
import { createNodeHandlers } from '../../src/commands/nodes.js';
import type { CommandOutcome } from '../../src/commands/port.js';
import {
  createChainHandlers,
  createPolicyHandlers,
  createResourceHandlers,
  present,
} from '../../src/commands/resources.js';
import { agentContext, systemContext } from '../../src/commands/system.js';
import { tuning } from '../../src/commands/tuning.js';
import { plainTypes } from '../../src/domain/fleet/resources.js';
import type { Actor } from '../../src/kernel/event.js';
import { randomIds } from '../../src/kernel/ids.js';
import { limits } from '../../src/kernel/limits.js';
import { createSelfSigned } from '../../src/security/self-signed.js';
import * as f from '../support/fleet.js';
import { fleetInstallation } from '../support/fleet-installation.js';
import { createManualClock } from '../support/manual-clock.js';

const actor: Actor = { type: 'user', id: 'u-1', name: 'tester' };
const context = { actor, requestId: 'r' };
const day = 24 * 3600 * 1000;

const resultOf = <R>(outcome: CommandOutcome<R>): R => {
  if (outcome.kind !== 'done') throw new Error(outcome.kind);
  return outcome.result;
};
const repeated: CommandOutcome<never> = {
  kind: 'repeated',
  command: undefined,
  commandId: 'c',
  resourceId: 'x',
  position: 1,
};
/** A gateway on which every command repeats an earlier one. */
const repeating = { execute: async () => repeated } as never;

const keyring = { seal: () => f.sealed } as never;

const serviceKeys = { newest: () => ({ publicKey: new Uint8Array(32), named: {} }) };

describe('handlers of resources', () => {
  it('are those of every resource that stores no secret and belongs to no other', () => {
    const { gateway } = fleetInstallation();
    const types = Object.keys(createResourceHandlers(gateway, randomIds));
    const secret = ['credential', 'webhook', 'join_token'];
    for (const type of secret) expect(types).not.toContain(type);
    expect(types).toEqual(plainTypes.filter((type) => !secret.includes(type)));
  });

  it('never answer with a resource that is not there', () => {
    expect(present('here')).toBe('here');
    expect(() => present(undefined)).toThrow('missing right after its own command');
  });

  it('pass on that a deploy or a command for an agent repeats an earlier one, without a result', async () => {
    const { deploy } = createChainHandlers(repeating);
    expect(await deploy(context, 'x', undefined)).toBe(repeated);
    const nodes = createNodeHandlers({
      gateway: repeating,
      keyring,
      serviceKeys,
      clock: createManualClock(),
      ids: randomIds,
    });
    expect(await nodes.command(context, 'x', 'RELOAD_CONFIG')).toBe(repeated);
  });

  it('save and remove the policy of a listener', async () => {
    const { gateway, fleet } = fleetInstallation();
    f.performAll(fleet, [f.createNode('a')]);
    const { save, remove } = createPolicyHandlers(gateway);
    const key = f.policyKeyOf('a', 443);
    const priority_order = ['tls', 'raw', 'reality', 'noise'] as const;
    const saved = resultOf(await save(context, undefined, { ...key, priority_order }));
    expect(saved).toMatchObject({ ...key, priority_order, version: 1 });
    expect(fleet.tables.listener_policy.get(f.policyIdOf('a', 443))).toEqual(saved);
    expect(resultOf(await remove(context, [1], key))).toBeUndefined();
    expect(fleet.tables.listener_policy.get(f.policyIdOf('a', 443))).toBeUndefined();
  });
});

describe('handlers of nodes', () => {
  async function node() {
    const installation = fleetInstallation();
    const clock = createManualClock();
    const { gateway } = installation;
    const handlers = createNodeHandlers({
      gateway,
      keyring,
      serviceKeys,
      clock,
      ids: randomIds,
    });
    const fields = { name: 'a', description: null, address: null, labels: {}, issuePsk: false };
    const { node: created } = resultOf(await handlers.create(context, fields));
    return { ...installation, clock, handlers, created };
  }

  it('queue a command for the agent until it expires, and answer it with the id of the command', async () => {
    const { handlers, created, clock, fleet } = await node();
    const outcome = await handlers.command(context, created.id, 'RELOAD_CONFIG');
    const now = clock.now();
    const queued = {
      id: outcome.commandId,
      command: 'RELOAD_CONFIG',
      queued_at: new Date(now).toISOString(),
      expires_at: new Date(now + limits.agent.commandExpiryMs).toISOString(),
      actor: context.actor,
    };
    expect(resultOf(outcome)).toEqual(queued);
    expect(fleet.tables.node.get(created.id)?.commands).toEqual([queued]);
  });

  it('raise the generation of a node that is refreshed, and answer the new one', async () => {
    const { handlers, created, fleet } = await node();
    const before = fleet.generationOf(created.id) ?? Infinity;
    const { generation } = resultOf(await handlers.refresh(context, created.id));
    expect(generation).toBe(fleet.generationOf(created.id));
    expect(generation).toBeGreaterThan(before);
  });

  it('make no PSK that nobody asked for', async () => {
    const { created } = await node();
    expect(created.psk).toBeNull();
  });
});

describe('handlers of credentials', () => {
  function credentials() {
    const installation = fleetInstallation();
    const { gateway } = installation;
    const clock = createManualClock();
    const handlers = createCredentialHandlers({ gateway, keyring, clock, ids: randomIds });
    return { ...installation, handlers };
  }

  it('store every field of a REALITY identity, and change only those that are given', async () => {
    const { handlers, fleet } = credentials();
    const keys = resultOf(await handlers.create(context, { name: 'keys', key_type: 'x25519' }));
    const other = resultOf(await handlers.create(context, { name: 'other', key_type: 'x25519' }));
    const fields = {
      x25519_credential_id: keys.id,
      server_names: ['a.example'],
      short_ids: ['0123'],
      target_host: 'target.example',
      target_port: 443,
    };
    const created = resultOf(await handlers.create(context, { name: 'identity', key_type: 'reality', ...fields }));
    expect(created).toMatchObject({ ...fields, private_key: null });
    let expected = fields;
    for (const change of [
      { x25519_credential_id: other.id },
      { server_names: ['b.example'] },
      { short_ids: ['4567'] },
      { target_host: 'elsewhere.example' },
      { target_port: 8443 },
    ]) {
      expected = { ...expected, ...change };
      const changed = resultOf(await handlers.update(context, created.id, undefined, change));
      expect(changed).toMatchObject(expected);
    }
    expect(fleet.tables.credential.get(created.id)).toMatchObject(expected);
  });
});

describe('key material', () => {
  const now = Date.UTC(2026, 0, 1);
  const certified = (notBefore: number, notAfter: number) =>
    createSelfSigned({ commonName: 'a.example', subjectAltNames: ['a.example'], notBefore, notAfter });
  const given = async (notBefore: number, notAfter: number) => {
    const { certificatePem, privateKeyPem } = await certified(notBefore, notAfter);
    return keyMaterial({ certificate_pem: certificatePem, private_key_pem: privateKeyPem }, now);
  };

  it('is nothing when nothing is said of keys', async () => {
    expect(await keyMaterial({}, now)).toEqual({ fields: {} });
  });

  it('has a certificate that is valid now, to the second', async () => {
    const skew = tuning.certificateClockSkewMs;
    expect(await given(now + skew, now + 1000)).toMatchObject({ privateKey: expect.any(Uint8Array) });
    await expect(given(now + skew + 1000, now + day)).rejects.toMatchObject({ code: 'invalid_request' });
    await expect(given(now - day, now)).rejects.toThrow(/^certificate_pem: .*expired/);
  });

  it('names the field that cannot be read, or that does not belong to the other', async () => {
    const [one, other] = await Promise.all([certified(now, now + day), certified(now, now + day)]);
    await expect(keyMaterial({ certificate_pem: 'no' }, now)).rejects.toThrow(/^certificate_pem: /);
    const mixed = { certificate_pem: one.certificatePem, private_key_pem: other.privateKeyPem };
    await expect(keyMaterial(mixed, now)).rejects.toThrow(/^private_key_pem: .*another/);
    await expect(keyMaterial({ ...mixed, private_key_pem: 'no' }, now)).rejects.toThrow(/^private_key_pem: /);
  });

  it.each([
    ['its common name, unless names are given', undefined, ['a.example']],
    ['its common name, when the names are none', [], ['a.example']],
    ['the names that are given', ['b.example', 'c.example'], ['b.example', 'c.example']],
  ])('that is made here is for %s', async (_, subject_alt_names, names) => {
    const { fields } = await keyMaterial(
      { self_signed: { common_name: 'a.example', subject_alt_names, days: 2 } },
      now,
    );
    // In the certificate itself, which is what clients look at.
    const { subjectAltName } = new X509Certificate(fields.certificate_pem ?? '');
    expect(subjectAltName).toBe(names.map((name) => `DNS:${name}`).join(', '));
    expect(fields.certificate).toMatchObject({
      subject_alt_names: names,
      not_before: new Date(now - tuning.certificateClockSkewMs).toISOString(),
      not_after: new Date(now + 2 * day).toISOString(),
    });
  });
});

describe('a command that no user gives', () => {
  it('says that the service gives it and why, or which agent and in which session', () => {
    expect(systemContext('why')).toEqual({
      actor: { type: 'system', id: 'service', name: 'service' },
      requestId: 'why',
    });
    expect(agentContext('n', 's')).toEqual({ actor: { type: 'agent', id: 'n', name: 'n' }, requestId: 's' });
  });
});
