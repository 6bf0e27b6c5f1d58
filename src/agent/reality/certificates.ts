/**
 * The certificates that a server shows to an agent: parses them, also in the compressed form that browsers accept (RFC
 * 8446, section 4.4.2; RFC 8879), and checks whether browsers would trust them for a name and whether the server has
 * the key of its own certificate (section 4.4.3). For a target, the result only decides the text of an error and how
 * the agent leaves; nothing is entrusted to the target. But an agent that mistook a copied chain for the target's,
 * which no browser does, would give itself away.
 */
import { X509Certificate, constants, verify, type KeyObject } from 'node:crypto';
import { rootCertificates } from 'node:tls';
import { brotliDecompressSync } from 'node:zlib';
import { messageType } from '../../channel/tls/codes.js';
import { Malformed, readList, readWhole, unlessMalformed } from '../../channel/tls/vectors.js';

const brotli = 2;
const uncompressedMax = 256 * 1024;

/** The certificates in DER, the server's own first; undefined if it is another message, is malformed, or contains none. */
export function readCertificates(type: number, body: Buffer): readonly Buffer[] | undefined {
  if (type !== messageType.certificate && type !== messageType.compressedCertificate) return undefined;
  const plain = type === messageType.compressedCertificate ? decompress(body) : body;
  return plain && unlessMalformed(() => read(plain));
}

function read(body: Buffer): readonly Buffer[] {
  const list = readWhole(body, (outer) => {
    outer.vector(1);
    return outer.vector(3);
  });
  const entries = readList(list, (one) => ({ certificate: one.vector(3), extensions: one.vector(2) }));
  if (entries.length === 0) throw new Malformed('no certificate');
  return entries.map(({ certificate }) => certificate);
}

function decompress(body: Buffer): Buffer | undefined {
  const compressed = unlessMalformed(() =>
    readWhole(body, (one) => ({ algorithm: one.uint(2), length: one.uint(3), bytes: one.vector(3) })),
  );
  if (compressed?.algorithm !== brotli || compressed.length > uncompressedMax) return undefined;
  try {
    const plain = brotliDecompressSync(compressed.bytes, { maxOutputLength: compressed.length });
    return plain.length === compressed.length ? plain : undefined;
  } catch {
    return undefined;
  }
}

export interface Proof {
  /** A signature scheme. */
  readonly scheme: number;
  readonly bytes: Buffer;
}

/** The content of a CertificateVerify; undefined if it is malformed. */
export function readProof(body: Buffer): Proof | undefined {
  return unlessMalformed(() => readWhole(body, (one) => ({ scheme: one.uint(2), bytes: one.vector(2) })));
}

/** The schemes of the agent's hello that TLS 1.3 allows, with the key type that each needs. */
const schemes: ReadonlyMap<number, { readonly key: string; readonly hash: string | null }> = new Map([
  [0x0403, { key: 'ec', hash: 'sha256' }],
  [0x0503, { key: 'ec', hash: 'sha384' }],
  [0x0804, { key: 'rsa', hash: 'sha256' }],
  [0x0805, { key: 'rsa', hash: 'sha384' }],
  [0x0806, { key: 'rsa', hash: 'sha512' }],
]);

/**
 * Whether the server has the key of its certificate.
 * @param certificate DER
 * @param content the bytes that its CertificateVerify signs
 */
export function hasItsKey(certificate: Buffer, content: Uint8Array, { scheme, bytes }: Proof): boolean {
  const { key: type, hash } = schemes.get(scheme) ?? {};
  let key: KeyObject;
  try {
    key = new X509Certificate(certificate).publicKey;
  } catch {
    return false;
  }
  if (hash === undefined || key.asymmetricKeyType !== type) return false;
  const padding = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
  return verify(hash, content, type === 'rsa' ? { key, ...padding } : key, bytes);
}

let parsedRoots: readonly X509Certificate[] | undefined;
const knownRoots = (): readonly X509Certificate[] =>
  (parsedRoots ??= rootCertificates.map((pem) => new X509Certificate(pem)));

/**
 * Whether browsers trust this certificate chain for a name; if they do, the target answered instead of the service.
 * @param chain DER, the server's own first
 * @param now milliseconds since the Unix epoch
 * @param roots authorities; by default those that Node knows
 */
export function isTrusted(
  chain: readonly Buffer[],
  serverName: string,
  now: number,
  roots: () => readonly X509Certificate[] = knownRoots,
): boolean {
  const certificates = parse(chain);
  let current = certificates?.[0];
  if (certificates === undefined || current?.checkHost(serverName) === undefined) return false;
  const isIssuer = (one: X509Certificate, of: X509Certificate): boolean =>
    one.ca && of.checkIssued(one) && of.verify(one.publicKey);
  // Each step goes up by one, so no chain takes more steps than it has certificates.
  for (let step = 0; step <= certificates.length; step += 1) {
    const below: X509Certificate = current;
    if (Date.parse(below.validFrom) > now || Date.parse(below.validTo) < now) return false;
    if (roots().some((root) => isIssuer(root, below))) return true;
    const above = certificates.find((one) => one !== below && isIssuer(one, below));
    if (above === undefined) return false;
    current = above;
  }
  return false;
}

function parse(chain: readonly Buffer[]): readonly X509Certificate[] | undefined {
  try {
    return chain.map((der) => new X509Certificate(der));
  } catch {
    return undefined;
  }
}
