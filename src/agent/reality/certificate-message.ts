/** Reads a server's Certificate message, which browsers also take compressed (RFC 8446, section 4.4.2; RFC 8879). */
import { brotliDecompressSync } from 'node:zlib';
import { messageType } from '../../channel/tls/codes.js';
import { Malformed, createReader, unlessMalformed } from '../../channel/tls/vectors.js';

const brotli = 2;
const uncompressedMax = 256 * 1024;

/** The certificates in DER, the server's own first; undefined if the message is malformed or holds none. */
export function readCertificates(type: number, body: Buffer): readonly Buffer[] | undefined {
  const plain = type === messageType.compressedCertificate ? decompress(body) : body;
  return plain && unlessMalformed(() => read(plain));
}

function read(body: Buffer): readonly Buffer[] {
  const outer = createReader(body);
  outer.vector(1);
  const list = createReader(outer.vector(3));
  outer.end();
  const certificates: Buffer[] = [];
  while (list.left > 0) {
    certificates.push(list.vector(3));
    list.vector(2);
  }
  if (certificates.length === 0) throw new Malformed('no certificate');
  return certificates;
}

function decompress(body: Buffer): Buffer | undefined {
  const compressed = unlessMalformed(() => {
    const reader = createReader(body);
    const algorithm = reader.uint(2);
    const length = reader.uint(3);
    const bytes = reader.vector(3);
    reader.end();
    return { algorithm, length, bytes };
  });
  if (compressed?.algorithm !== brotli || compressed.length > uncompressedMax) return undefined;
  try {
    const plain = brotliDecompressSync(compressed.bytes, { maxOutputLength: compressed.length });
    return plain.length === compressed.length ? plain : undefined;
  } catch {
    return undefined;
  }
}
