/**
 * The pin of a certificate: SHA-256 over its SubjectPublicKeyInfo exactly as in the certificate, in base64. The bytes
 * are cut out of the DER rather than encoded again, so that the pin matches other tools for any encoding. Pure.
 * Implements `upstream_tls_spki_pins_sha256` of `docs/contract/wire.md#configuration`.
 */
import { createHash } from 'node:crypto';

/** @returns undefined for bytes that are not a certificate */
export function spkiPin(certificate: Uint8Array): string | undefined {
  const spki = subjectPublicKeyInfo(certificate);
  return spki === undefined ? undefined : createHash('sha256').update(spki).digest('base64');
}

const sequence = 0x30;
const explicitVersion = 0xa0;

/** Certificate = SEQUENCE { tbs = SEQUENCE { [0] version?, serial, algorithm, issuer, validity, subject, spki, … }, … } */
export function subjectPublicKeyInfo(certificate: Uint8Array): Uint8Array | undefined {
  const outer = element(certificate, 0);
  if (outer?.tag !== sequence) return undefined;
  const tbs = element(certificate, outer.content);
  if (tbs?.tag !== sequence || tbs.end > outer.end) return undefined;
  const fields: Element[] = [];
  for (let at = tbs.content; at < tbs.end && fields.length < 7;) {
    const field = element(certificate, at);
    if (field === undefined || field.end > tbs.end) return undefined;
    fields.push(field);
    at = field.end;
  }
  const spki = fields[fields[0]?.tag === explicitVersion ? 6 : 5];
  return spki?.tag === sequence ? certificate.subarray(spki.start, spki.end) : undefined;
}

interface Element {
  readonly tag: number;
  readonly start: number;
  readonly content: number;
  readonly end: number;
}

/** The DER element that starts at `start`, if it is complete. */
function element(bytes: Uint8Array, start: number): Element | undefined {
  const tag = bytes[start];
  const first = bytes[start + 1];
  if (tag === undefined || first === undefined) return undefined;
  const lengthBytes = first < 0x80 ? 0 : first - 0x80;
  if (first === 0x80 || lengthBytes > 4) return undefined;
  const content = start + 2 + lengthBytes;
  let length = first < 0x80 ? first : 0;
  for (let at = start + 2; at < content; at += 1) length = length * 256 + (bytes[at] ?? 0);
  const end = content + length;
  return end <= bytes.length ? { tag, start, content, end } : undefined;
}
