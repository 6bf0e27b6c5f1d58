/**
 * TLS certificates and their private keys, parsed from PEM and normalised. A parsed chain contains nothing but
 * certificates, so no key can hide in it. Callers check validity periods with their own clock; `self-signed.ts` makes
 * new ones. Implements `docs/contract/rest.md#credentials`.
 */
import 'reflect-metadata';
import { X509Certificate as ParsedCertificate } from '@peculiar/x509';
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { canonicalNamePattern } from '../kernel/addresses.js';
import { errorText } from '../kernel/errors.js';
import type { CertificateDetails } from '../domain/credential/credential.js';
import { timestamp } from '../kernel/clock.js';
import { err, ok, type Result } from '../kernel/result.js';
import { spkiPin } from '../channel/tls/spki-pin.js';

/** A certificate and its chain. */
export interface CertificateChain {
  /** Leaf first, then the issuer of each. */
  readonly pem: string;
  readonly leaf: CertificateDetails;
  /** The earliest expiry in the chain, RFC 3339. */
  readonly endsAt: string;
  /** Whether a private key belongs to the leaf. */
  matches(key: PrivateKey): boolean;
}

export interface PrivateKey {
  /** PKCS #8. */
  readonly pem: string;
  readonly key: KeyObject;
}

const chainPem = 'expected PEM certificates: the leaf first, then each one that issued the one before it';
const clientsAccept = 'expected certificates that TLS clients accept';
const keyPem = 'expected one PEM private key without a passphrase';
const rsaBits = 2048;
const weakSignatures: readonly (string | undefined)[] = ['SHA-1', '1.2.840.113549.1.1.4'];
const curves: readonly (string | undefined)[] = ['prime256v1', 'secp384r1', 'secp521r1'];

/**
 * Parses a certificate chain. Yields between two certificates, because each costs milliseconds and a chain may have a hundred.
 * @returns a refusal that says what was expected, without the field name
 */
export function* readCertificateChain(text: string): Generator<void, Result<CertificateChain, string>> {
  const blocks = pemBlocks(text);
  if (typeof blocks === 'number') return err(`${chainPem}; see line ${blocks}`);
  if (blocks.length === 0) return err(chainPem);
  const other = blocks.find(({ label }) => label !== 'CERTIFICATE');
  if (other !== undefined) return err(`${chainPem}; it also has a block that is not a certificate`);
  const certificates: X509Certificate[] = [];
  for (const [index, { bytes }] of blocks.entries()) {
    if (index > 0) yield;
    const read = certificateOf(bytes);
    if (read === undefined) return err(`${chainPem}; certificate ${index + 1} cannot be read`);
    if (read.isWeak) return err(`${clientsAccept}; certificate ${index + 1} is signed with SHA-1 or MD5`);
    certificates.push(read.certificate);
  }
  for (const [index, certificate] of certificates.entries()) {
    if (index === 0) continue;
    if (!issued(certificate, certificates[index - 1])) {
      return err(`${chainPem}; certificate ${index + 1} did not issue certificate ${index}`);
    }
    yield;
  }
  const [leaf] = certificates;
  if (leaf === undefined) return err(chainPem);
  const weak = weakness(leaf.publicKey) ?? tlsRefusal(certificates);
  if (weak !== undefined) return err(weak);
  const ends = certificates.map((certificate) => timeOf(certificate.validTo)).sort();
  return ok({
    pem: certificates.map((certificate) => certificate.toString()).join(''),
    leaf: detailsOf(leaf),
    endsAt: ends[0] ?? '',
    matches: ({ key }) => leaf.checkPrivateKey(key),
  });
}

/**
 * Parses one private key.
 * @returns a refusal that says what was expected, without the field name and without any part of the key
 */
export function readPrivateKey(text: string): Result<PrivateKey, string> {
  const blocks = pemBlocks(text);
  const keys = typeof blocks === 'number' ? [] : blocks.filter(({ label }) => label !== 'EC PARAMETERS');
  const [block] = keys;
  if (keys.length !== 1 || block?.label.endsWith('PRIVATE KEY') !== true) return err(keyPem);
  if (block.label === 'ENCRYPTED PRIVATE KEY' || block.hasHeaders) return err(keyPem);
  try {
    const key = createPrivateKey({ key: block.text, format: 'pem' });
    const weak = weakness(key);
    if (weak !== undefined) return err(weak);
    return ok({ pem: key.export({ type: 'pkcs8', format: 'pem' }).toString(), key });
  } catch {
    return err(keyPem);
  }
}

/** Why TLS cannot or should not use a key. */
function weakness({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): string | undefined {
  switch (type) {
    case 'rsa':
    case 'rsa-pss':
      return (details?.modulusLength ?? 0) >= rsaBits ? undefined : `expected an RSA key of at least ${rsaBits} bits`;
    case 'ec':
      return curves.includes(details?.namedCurve) ? undefined : 'expected an EC key on P-256, P-384 or P-521';
    case 'ed25519':
      return undefined;
    default:
      return 'expected an RSA, EC or Ed25519 key';
  }
}

/** Why an agent's TLS would not serve a chain. */
function tlsRefusal(chain: readonly X509Certificate[]): string | undefined {
  const refusalOf = (certificates: readonly X509Certificate[]): string | undefined => {
    try {
      createSecureContext({ cert: certificates.join('') });
      return undefined;
    } catch (error) {
      return error instanceof Error && 'reason' in error ? String(error.reason) : errorText(error);
    }
  };
  const reason = refusalOf(chain);
  if (reason === undefined) return undefined;
  const index = chain.findIndex((certificate) => refusalOf([certificate]) === reason);
  const which = index === -1 ? '' : `; certificate ${index + 1}`;
  return `expected certificates that TLS can serve${which}: ${reason}`;
}

type Signature = { readonly name?: string; readonly hash?: { readonly name: string } };

/** Since OpenSSL 3.5, in Node 24, a server loads such a certificate, which no client accepts. A root's own signature may be weak. */
function hasWeakSignature(certificate: X509Certificate): boolean {
  const algorithm: Signature = new ParsedCertificate(certificate.raw).signatureAlgorithm;
  return weakSignatures.includes(algorithm.hash?.name ?? algorithm.name) && !issued(certificate, certificate);
}

function certificateOf(bytes: Uint8Array) {
  try {
    const certificate = new X509Certificate(bytes);
    // Each parses a part that may be malformed.
    void certificate.publicKey;
    detailsOf(certificate);
    return { certificate, isWeak: hasWeakSignature(certificate) };
  } catch {
    return undefined;
  }
}

function issued(issuer: X509Certificate, certificate: X509Certificate | undefined): boolean {
  try {
    return certificate !== undefined && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
  } catch {
    return false;
  }
}

function detailsOf(certificate: X509Certificate): CertificateDetails {
  const self_signed = certificate.subject === certificate.issuer && certificate.verify(certificate.publicKey);
  const names = dnsNames(certificate.subjectAltName ?? '');
  const pin = spkiPin(certificate.raw);
  if (pin === undefined) throw new RangeError('a certificate has no public key');
  return {
    subject: nameOf(certificate.subject),
    issuer: nameOf(certificate.issuer),
    subject_alt_names: names.length === 0 && self_signed ? commonNameOf(certificate) : names,
    not_before: timeOf(certificate.validFrom),
    not_after: timeOf(certificate.validTo),
    serial_number: certificate.serialNumber.toLowerCase(),
    fingerprint_sha256: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
    spki_sha256: pin,
    self_signed,
  };
}

/** Node writes one attribute per line, and undefined for an empty name. */
function nameOf(lines: string | undefined): string {
  return (lines ?? '').split('\n').join(', ');
}

/** @throws RangeError for an invalid time */
function timeOf(text: string): string {
  return timestamp(Date.parse(text));
}

/** The DNS names in Node's text of the extension, which quotes names with special characters. */
function dnsNames(text: string): readonly string[] {
  const entries = [...text.matchAll(/(?:^|, )([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^",]*)/gy)];
  const names = entries.flatMap(([, kind, name = '']) => (kind === 'DNS' ? (canonicalNamePattern(name) ?? []) : []));
  return [...new Set(names)];
}

function commonNameOf({ subject }: X509Certificate): readonly string[] {
  const line = (subject ?? '').split('\n').find((attribute) => attribute.startsWith('CN='));
  const name = line === undefined ? undefined : canonicalNamePattern(line.slice('CN='.length));
  return name === undefined ? [] : [name];
}

interface PemBlock {
  /** Such as `CERTIFICATE`. */
  readonly label: string;
  /** With its boundary lines. */
  readonly text: string;
  readonly bytes: Uint8Array;
  /** Whether lines such as `Proc-Type: 4,ENCRYPTED` precede the Base64. */
  readonly hasHeaders: boolean;
}

/** Files joined without a line break have two boundaries in one line. */
const boundaries = /(-----(?:BEGIN|END) [A-Z0-9 ]{1,64}-----)/;
/** One with a dash too few. */
const almostBoundary = /-(BEGIN|END) [A-Z0-9 ]{1,64}-/;
const boundary = /^-----(BEGIN|END) ([A-Z0-9 ]{1,64})-----$/;

/**
 * The PEM blocks of a text, in linear time, without text around them.
 * @returns the line that is wrong when a block has no matching end, or something that belongs to no block
 */
function pemBlocks(text: string): readonly PemBlock[] | number {
  const blocks: PemBlock[] = [];
  let open: { readonly label: string; readonly lines: string[]; readonly from: number } | undefined;
  for (const [index, raw] of text.split(/\r\n|\r|\n/).entries()) {
    for (const piece of raw.split(boundaries).map((one) => one.trim())) {
      const [, kind, label] = boundary.exec(piece) ?? [];
      if (kind === undefined || label === undefined) {
        if (open === undefined ? almostBoundary.test(piece) : piece.includes('-')) return index + 1;
        open?.lines.push(piece);
      } else if (kind === 'BEGIN') {
        if (open !== undefined) return index + 1;
        open = { label, lines: [], from: index + 1 };
      } else {
        if (open?.label !== label) return index + 1;
        blocks.push(blockOf(open));
        open = undefined;
      }
    }
  }
  return open === undefined ? blocks : open.from;
}

function blockOf({ label, lines }: { readonly label: string; readonly lines: readonly string[] }): PemBlock {
  const body = lines.filter((line) => line !== '');
  return {
    label,
    text: [`-----BEGIN ${label}-----`, ...body, `-----END ${label}-----`, ''].join('\n'),
    bytes: Buffer.from(body.join(''), 'base64'),
    hasHeaders: body.some((line) => line.includes(':')),
  };
}
