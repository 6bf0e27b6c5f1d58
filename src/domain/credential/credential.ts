/**
 * A credential: an X25519 key pair, a TLS certificate with its key, or a REALITY identity over an X25519 credential.
 * Keys are made and certificates read before a command is decided (`src/commands/`).
 * Implements `docs/contract/rest.md#credentials` and `docs/contract/domain.md#l4-chain` (keys and pins).
 */
import type { FieldChange } from '../resource/change.js';
import type { ResourceKey } from '../resource/fleet-view.js';
import type { ResourceMeta } from '../resource/meta.js';
import type { SealedSecret } from '../secret/sealed.js';

/** The details of a certificate that credentials store and show. `src/security/certificates.ts` reads them. */
export interface CertificateDetails {
  /** `CN=a.example, O=Example`, in the certificate's order. */
  readonly subject: string;
  readonly issuer: string;
  /** The DNS names, lower-cased, in the certificate's order; the common name of a self-signed one without any. */
  readonly subject_alt_names: readonly string[];
  /** RFC 3339, UTC, milliseconds. */
  readonly not_before: string;
  readonly not_after: string;
  /** Lower-case hexadecimal, like the fingerprint. */
  readonly serial_number: string;
  readonly fingerprint_sha256: string;
  /** Base64, as pins are. */
  readonly spki_sha256: string;
  readonly self_signed: boolean;
}

export const keyTypes = ['x25519', 'tls_cert', 'reality'] as const;
export type KeyType = (typeof keyTypes)[number];

/** One shape for all types, because events hold field changes. Fields that a type does not have are null or empty. */
export interface CredentialDefinition {
  readonly name: string;
  readonly key_type: KeyType;
  /** x25519: base64url of 32 bytes. */
  readonly public_key: string | null;
  /** x25519: 32 raw bytes; tls_cert: PEM. */
  readonly private_key: SealedSecret | null;
  /** reality. */
  readonly x25519_credential_id: string | null;
  readonly server_names: readonly string[];
  readonly short_ids: readonly string[];
  readonly target_host: string | null;
  readonly target_port: number | null;
  /** tls_cert: leaf first, then the chain. */
  readonly certificate_pem: string | null;
  /** Read once, when saved. */
  readonly certificate: CertificateDetails | null;
}

/** The fields of each type besides name and type. */
export const fieldsOfKeyType = {
  x25519: ['public_key', 'private_key'],
  tls_cert: ['private_key', 'certificate_pem', 'certificate'],
  reality: ['x25519_credential_id', 'server_names', 'short_ids', 'target_host', 'target_port'],
} as const satisfies { readonly [T in KeyType]: readonly (keyof CredentialDefinition)[] };

/** The value of fields that a type does not have. */
export const noFields: Omit<CredentialDefinition, 'name' | 'key_type'> = {
  public_key: null,
  private_key: null,
  x25519_credential_id: null,
  server_names: [],
  short_ids: [],
  target_host: null,
  target_port: null,
  certificate_pem: null,
  certificate: null,
};

/**
 * While it lasts, diallers of a TLS hop trust the former key's pin too. Another change begins a new overlap with its own
 * former key, so two changes end the trust in a leaked key.
 */
export interface PinOverlap {
  /** The former pin. */
  readonly spki_sha256: string;
  /** RFC 3339. */
  readonly ends_at: string;
}

export interface CredentialState extends ResourceMeta, CredentialDefinition {
  readonly overlap: PinOverlap | null;
}

export interface CredentialOverlapEnded {
  readonly type: 'CredentialOverlapEnded';
  readonly data: { readonly credential_id: string; readonly overlap: FieldChange<PinOverlap | null> };
}

/** Does nothing unless this very overlap still lasts: another instance may have ended it. */
export interface EndCredentialOverlap {
  readonly type: 'EndCredentialOverlap';
  readonly id: string;
  readonly ends_at: string;
}

export const credentialKey: ResourceKey<CredentialState> = { type: 'credential' };

/** The names of a certificate that the service made; undefined for any other. */
export function namesOfSelfSigned({
  self_signed,
  subject,
  subject_alt_names,
}: CertificateDetails): { readonly common_name: string; readonly subject_alt_names: readonly string[] } | undefined {
  const [, common_name] = /^CN=([^,]+)$/.exec(subject) ?? [];
  return self_signed && common_name !== undefined ? { common_name, subject_alt_names } : undefined;
}
