/** Random credentials, and hops over every transport that use them, for histories. */
import type { Hop, Payload } from '../../src/domain/chain/chain.js';
import { keyTypes, type CredentialState, type KeyType } from '../../src/domain/credential/credential.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import type { IfMatch } from '../../src/domain/resource/refusal.js';
import type { Dealer } from './dealer.js';
import * as f from './fleet.js';

const keys = ['one', 'two', 'three', 'four', 'five'];
const exactNames = ['a.example', 'b.example', 'c.example'];
const patterns = ['a.example', 'b.example', '*.example', 'c.example'];

const somePatterns = (deal: Dealer): readonly string[] => patterns.filter(() => deal.chance(40));

/** Mostly one that a dialler can use; rarely none at all. */
function namesOfCertificate(deal: Dealer): readonly string[] {
  const names = somePatterns(deal);
  return names.length > 0 || deal.chance(10) ? names : ['c.example'];
}

const atLeastOne = (deal: Dealer): readonly string[] => {
  const names = exactNames.filter(() => deal.chance(50));
  return names.length > 0 ? names : [deal.of(exactNames)];
};

function credentialsOf(fleet: Fleet, type: KeyType): readonly CredentialState[] {
  const all = [...fleet.tables.credential.values()].filter(({ key_type }) => key_type === type);
  return all.sort((a, b) => (a.id < b.id ? -1 : 1));
}

export function createCredential(fleet: Fleet, deal: Dealer, id: string, name: string): FleetCommand {
  const x25519 = credentialsOf(fleet, 'x25519');
  const type = deal.of(keyTypes);
  if (type === 'tls_cert') {
    const certificate = f.rotatedTo(deal.of(keys), { subject_alt_names: namesOfCertificate(deal) });
    return { ...f.createTlsCert(name, certificate), id };
  }
  if (type === 'x25519' || x25519.length === 0) return { ...f.createX25519(name, f.x25519Keys(deal.of(keys))), id };
  const fields = { x25519_credential_id: deal.of(x25519).id, server_names: atLeastOne(deal) };
  return { ...f.createReality(name, '', fields), id };
}

/** An edit of the fields of its type, and sometimes of its name. */
export function editCredential(
  fleet: Fleet,
  deal: Dealer,
  credential: CredentialState,
  ifMatch: IfMatch,
  name: string,
): FleetCommand {
  const update = { type: 'UpdateCredential', id: credential.id, ifMatch } as const;
  const named = deal.chance(15) ? { name } : {};
  switch (credential.key_type) {
    case 'x25519':
      return { ...update, ...named, ...f.x25519Keys(deal.of(keys)) };
    case 'tls_cert':
      return { ...update, ...named, ...f.rotatedTo(deal.of(keys), { subject_alt_names: namesOfCertificate(deal) }) };
    case 'reality':
      return {
        ...update,
        ...named,
        ...(deal.chance(50) ? { server_names: atLeastOne(deal) } : {}),
        ...(deal.chance(30) ? { short_ids: deal.of([['0123'], ['ff', '0123'], ['0123', 'ff']]) } : {}),
        ...(deal.chance(30) ? { target_port: deal.of([443, 8443]) } : {}),
        ...(deal.chance(30) ? { x25519_credential_id: deal.of(credentialsOf(fleet, 'x25519')).id } : {}),
      };
  }
}

type Transport = Pick<Hop, 'outer' | 'security' | 'credential_id' | 'max_streams' | 'server_names'>;

const tcpRows = ['raw', 'tls', 'tls', 'reality', 'reality', 'quic'] as const;
const udpRows = ['raw', 'fake', 'noise', 'noise', 'fake noise', 'quic', 'quic'] as const;

/** A row of the transport table, plain where there is no credential for another one, with names that mostly suit it. */
export function transport(fleet: Fleet, deal: Dealer, payload: Payload): Transport {
  const plain: Transport = { outer: payload, security: 'raw' };
  const with_ = (type: KeyType, row: Transport): Transport => {
    const fitting = credentialsOf(fleet, type);
    if (fitting.length === 0) return plain;
    const hop = { ...row, credential_id: deal.of(fitting).id };
    return type === 'x25519' || deal.chance(50) ? hop : { ...hop, server_names: namesFor(fleet, deal, hop) };
  };
  const row = deal.of<(typeof tcpRows)[number] | (typeof udpRows)[number]>(payload === 'tcp' ? tcpRows : udpRows);
  switch (row) {
    case 'raw':
      return payload === 'tcp' && deal.chance(50) ? { ...plain, server_names: somePatterns(deal) } : plain;
    case 'tls':
      return with_('tls_cert', { outer: 'tcp', security: 'tls' });
    case 'reality':
      return with_('reality', { outer: 'tcp', security: 'reality' });
    case 'quic': {
      const streams = deal.chance(30) ? { max_streams: deal.of([1, 7, 65_535]) } : {};
      return with_('reality', { outer: 'quic', security: 'reality', ...streams });
    }
    case 'fake':
      return { outer: 'fake_tcp', security: 'raw' };
    case 'noise':
      return with_('x25519', { outer: 'udp', security: 'noise' });
    case 'fake noise':
      return with_('x25519', { outer: 'fake_tcp', security: 'noise' });
  }
}

/** Names that a hop may have; with REALITY, now and then one that its credential has not. */
export function namesFor(fleet: Fleet, deal: Dealer, hop: Transport): readonly string[] {
  if (hop.security !== 'reality' || deal.chance(5)) return somePatterns(deal);
  const names = fleet.tables.credential.get(hop.credential_id ?? '')?.server_names ?? [];
  return names.filter(() => deal.chance(60));
}
