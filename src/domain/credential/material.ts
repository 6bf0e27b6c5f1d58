/**
 * What rules take from credentials: keys as placeholders, names, pins. Each function returns undefined for a credential
 * that does not exist or has another type, which no live definition names. Implements
 * `docs/contract/wire.md#configuration`.
 */
import { streams } from '../../kernel/event.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { RealityInbound, RealityOutbound, SecretPlaceholder, TlsCertificate } from '../snapshot/snapshot.js';
import { credentialKey, type CredentialState } from './credential.js';

type Credentials = Pick<FleetView, 'get'>;

interface X25519Material {
  readonly public_key: string;
  readonly private_key: SecretPlaceholder;
}

function secretOf(credential: CredentialState): SecretPlaceholder | undefined {
  if (credential.private_key === null) return undefined;
  return {
    secret: credential.private_key,
    stream: streams.fleet,
    resource_id: credential.id,
    field: 'private_key',
  };
}

/** The key pair of an x25519 credential. */
export function x25519Material(fleet: Credentials, id: string | null | undefined): X25519Material | undefined {
  const credential = fleet.get(credentialKey, id);
  if (credential?.key_type !== 'x25519' || credential.public_key === null) return undefined;
  const private_key = secretOf(credential);
  return private_key === undefined ? undefined : { public_key: credential.public_key, private_key };
}

/** The listening side of a reality credential. @param serverNames the names that the listener accepts */
export function realityInbound(
  fleet: Credentials,
  id: string | undefined,
  serverNames: readonly string[],
): RealityInbound | undefined {
  const credential = fleet.get(credentialKey, id);
  const keys = x25519Material(fleet, credential?.x25519_credential_id);
  if (credential?.key_type !== 'reality' || keys === undefined) return undefined;
  const { short_ids, target_host, target_port } = credential;
  if (target_host === null || target_port === null) return undefined;
  return { private_key: keys.private_key, server_names: serverNames, short_ids, target_host, target_port };
}

/** The dialling side of a reality credential. */
export function realityOutbound(
  fleet: Credentials,
  id: string | undefined,
  serverName: string,
): RealityOutbound | undefined {
  const credential = fleet.get(credentialKey, id);
  const keys = x25519Material(fleet, credential?.x25519_credential_id);
  if (credential?.key_type !== 'reality' || keys === undefined) return undefined;
  return { public_key: keys.public_key, server_name: serverName, short_id: credential.short_ids[0] ?? '' };
}

/** The certificate of a tls_cert credential, with its key. */
export function tlsCertificate(fleet: Credentials, id: string | undefined): TlsCertificate | undefined {
  const credential = fleet.get(credentialKey, id);
  if (credential?.key_type !== 'tls_cert') return undefined;
  const { certificate, certificate_pem } = credential;
  const private_key_pem = secretOf(credential);
  if (certificate === null || certificate_pem === null || private_key_pem === undefined) return undefined;
  return {
    credential_id: credential.id,
    certificate_pem,
    private_key_pem,
    server_names: certificate.subject_alt_names,
  };
}

/** The pins that diallers of a tls_cert credential trust: its key's, and during an overlap the former key's. */
export function spkiPins(fleet: Credentials, id: string | undefined): readonly string[] {
  const credential = fleet.get(credentialKey, id);
  if (credential?.certificate === undefined || credential.certificate === null) return [];
  const { spki_sha256 } = credential.certificate;
  return credential.overlap === null ? [spki_sha256] : [spki_sha256, credential.overlap.spki_sha256];
}

/** The names of a reality or tls_cert credential, which a hop without names takes over. */
export function namesOfCredential(fleet: Credentials, id: string | undefined): readonly string[] {
  const credential = fleet.get(credentialKey, id);
  switch (credential?.key_type) {
    case 'reality':
      return credential.server_names;
    case 'tls_cert':
      return credential.certificate?.subject_alt_names ?? [];
    default:
      return [];
  }
}
