/**
 * What a certificate says of itself, as credentials store and show it. Not the reading of certificates: that is in
 * `src/security/certificates.ts`. Implements `docs/contract/rest.md#credentials`.
 */
export interface CertificateDetails {
  /** `CN=a.example, O=Example`, in the certificate's order. */
  readonly subject: string;
  readonly issuer: string;
  /** The DNS names, lower-cased, in the certificate's order; a self-signed one without any has its common name. */
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
