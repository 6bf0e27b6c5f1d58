/** A compiled snapshot as the agent gets it: the rules that chains do not have, and the secrets of all of them. */
import { describe, expect, it } from 'vitest';
import { openerOf, openSecrets, SecretUnreadableError } from '../../src/delivery/secrets.js';
import type { SecretOpener } from '../../src/delivery/secrets.js';
import { wireParts } from '../../src/delivery/wire.js';
import type { NodeSnapshot } from '../../src/domain/snapshot/snapshot.js';
import { AddressFamily, L3Role } from '../../src/gen/svc/control/v1/rules.js';
import type { OpenResult } from '../../src/security/sealing.js';
import { cluster, empty, policy, publicKey, secret, tunnel, whole } from '../support/every-kind-of-rule.js';

const key = Buffer.alloc(32, 5);
const atOnce: SecretOpener = () => key;
const later: SecretOpener = async () => key;

describe('a snapshot on the wire', () => {
  it('has routes, policies, health checks and tunnels with all their fields', async () => {
    const { gateway, l3, node } = wireParts(whole, await openSecrets(whole, atOnce));
    const origin = { resourceType: 'l4_chain', resourceId: 'chain', resourceName: 'Edge', hopIndex: 1 };
    expect(gateway.httpProxyRules).toEqual([
      {
        ruleId: 'chain/1',
        origin,
        listenAddr: '0.0.0.0',
        listenPort: 443,
        host: 'h.example',
        pathPrefix: '/',
        upstreamCluster: 'up',
      },
    ]);
    expect(gateway.listenerPolicies).toEqual([
      {
        transport: policy.transport,
        listenAddr: policy.listen_addr,
        listenPort: policy.listen_port,
        priorityOrder: policy.priority_order,
      },
    ]);
    expect(gateway.upstreamClusters.map(({ name, healthCheck }) => [name, healthCheck])).toEqual([
      [cluster.name, { intervalMs: 10_000, path: '' }],
      [cluster.name, undefined],
    ]);
    expect(l3.rules.map(({ role, enabled }) => [role, enabled])).toEqual([
      [L3Role.LISTENER, true],
      [L3Role.CONNECTOR, true],
    ]);
    expect(l3.rules[0]).toMatchObject({
      tun: {
        interfaceName: tunnel.tun.interface_name,
        addressFamily: AddressFamily.IPV4,
        prefixes: tunnel.tun.prefixes,
        mtu: tunnel.tun.mtu,
        features: tunnel.tun.features,
      },
      realityInbound: { privateKey: key },
      realityOutbound: undefined,
    });
    expect(l3.rules[1]).toMatchObject({ realityInbound: undefined, realityOutbound: { publicKey } });
    expect(node).toEqual({ multiplex: true, multiplexPort: 4443 });
  });

  it('is not made without its secrets', () => {
    expect(() => wireParts(whole, new Map())).toThrow('the secret private_key of c was not opened');
  });
});

describe('the secrets of a snapshot', () => {
  const { tcp_proxy_rules, quic_rules, udp_rules, l3_rules, tls_certificates } = whole;

  it.each<[string, Partial<NodeSnapshot>]>([
    ['tcp', { tcp_proxy_rules }],
    ['quic', { quic_rules }],
    ['udp', { udp_rules }],
    ['l3', { l3_rules }],
    ['certificates', { tls_certificates }],
  ])('are opened at once or waited for, in rules of every kind: %s', async (_, rules) => {
    const snapshot = { ...empty, ...rules };
    const opened = openSecrets(snapshot, atOnce);
    expect(opened).not.toBeInstanceOf(Promise);
    expect(await opened).toEqual(new Map([[secret, key]]));
    const waited = openSecrets(snapshot, later);
    expect(waited).toBeInstanceOf(Promise);
    expect(await waited).toEqual(new Map([[secret, key]]));
  });

  it('are none of a snapshot without any', async () => {
    expect(openSecrets(empty, later)).toEqual(new Map());
  });

  const sealedHere = { alg: 'xc20p', key_id: 'k', nonce: 'n', ct: 'c' } as const;
  const keyringOf = (cached: OpenResult | { readonly kind: 'not_cached' }, stored: OpenResult) => {
    const asked: unknown[] = [];
    const keyring = {
      openSync: (...args: unknown[]) => (asked.push(args), cached),
      open: async (...args: unknown[]) => (asked.push(args), stored),
    };
    return { open: openerOf(keyring as never), asked };
  };
  const opened: OpenResult = { kind: 'opened', plaintext: key };
  const placeholder = { ...secret, secret: sealedHere };

  it('are opened where they were sealed, from memory if their key is there', async () => {
    const { open, asked } = keyringOf(opened, { kind: 'shredded' });
    expect(open(placeholder)).toBe(key);
    expect(asked).toEqual([[sealedHere, { stream: 'svc-fleet', resourceId: 'c', field: 'private_key' }]]);
    const fetched = keyringOf({ kind: 'not_cached' }, opened);
    expect(await fetched.open(placeholder)).toBe(key);
    expect(fetched.asked).toHaveLength(2);
  });

  it.each<[string, OpenResult, boolean]>([
    ['its data key was deleted', { kind: 'shredded' }, true],
    ['tampered', { kind: 'refused', reason: 'tampered' }, false],
  ])('are named by their place when they cannot be opened: %s', async (reason, result, shredded) => {
    const expected = expect.objectContaining({ shredded, message: expect.stringContaining(`private_key of c`) });
    const now = keyringOf(result, opened);
    expect(() => now.open(placeholder)).toThrow(expected);
    expect(() => now.open(placeholder)).toThrow(reason);
    await expect(keyringOf({ kind: 'not_cached' }, result).open(placeholder)).rejects.toEqual(expected);
  });

  it('that were never sealed are refused', () => {
    const never = { ...secret, secret: { alg: 'none' } as never };
    expect(() => keyringOf(opened, opened).open(never)).toThrow(SecretUnreadableError);
  });
});
