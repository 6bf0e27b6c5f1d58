/** A compiled snapshot as the agent gets it: the rules that chains do not have, and the secrets of all of them. */
import { describe, expect, it } from 'vitest';
import { openerOf } from '../../src/delivery/secrets.js';
import { wireParts } from '../../src/delivery/wire.js';
import type { NodeSnapshot } from '../../src/domain/snapshot/snapshot.js';
import { AddressFamily, L3Role } from '../../src/gen/svc/control/v1/rules.js';
import type { OpenResult } from '../../src/security/sealing.js';
import { cluster, empty, noSecrets, policy, publicKey, secret, tunnel, whole } from '../support/every-kind-of-rule.js';

const key = Buffer.alloc(32, 5);

describe('a snapshot on the wire', () => {
  it('has routes, policies, health checks and tunnels with all their fields', async () => {
    const { gateway, l3, node } = wireParts(whole, () => key);
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
    const unreadable = (): never => {
      throw new Error('the secret cannot be opened');
    };
    expect(() => wireParts(whole, unreadable)).toThrow('the secret cannot be opened');
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
  ])('are opened in rules of every kind: %s', (_, rules) => {
    const asked = new Set<unknown>();
    wireParts({ ...empty, ...rules }, (placeholder) => (asked.add(placeholder), key));
    expect(asked).toEqual(new Set([secret]));
  });

  it('are none of a snapshot without any', () => {
    expect(() => wireParts(empty, noSecrets)).not.toThrow();
  });

  const sealedHere = { alg: 'xc20p', key_id: 'k', nonce: 'n', ct: 'c' } as const;
  const keyringOf = (result: OpenResult) => {
    const asked: unknown[] = [];
    return { open: openerOf({ open: (...args) => (asked.push(args), result) }), asked };
  };
  const opened: OpenResult = { kind: 'opened', plaintext: key };
  const placeholder = { ...secret, secret: sealedHere };

  it('are opened where they were sealed', () => {
    const { open, asked } = keyringOf(opened);
    expect(open(placeholder)).toBe(key);
    expect(asked).toEqual([[sealedHere, { stream: 'svc-fleet', resourceId: 'c', field: 'private_key' }]]);
  });

  it('are named by their place when they cannot be opened', () => {
    const { open } = keyringOf({ kind: 'refused', reason: 'tampered' });
    expect(() => open(placeholder)).toThrow('the secret private_key of c cannot be opened: tampered');
  });

  it('that were never sealed are refused', () => {
    const never = { ...secret, secret: { alg: 'none' } as never };
    expect(() => keyringOf(opened).open(never)).toThrow('it is not a sealed value');
  });
});
