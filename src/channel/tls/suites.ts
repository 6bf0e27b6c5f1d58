/** The cipher suites of TLS 1.3 (RFC 8446, appendix B.4): their hash and their AEAD. */

export interface Suite {
  readonly id: number;
  readonly hash: 'sha256' | 'sha384';
  /** Output length of the hash. */
  readonly hashBytes: 32 | 48;
  readonly aead: 'aes-128-gcm' | 'aes-256-gcm' | 'chacha20-poly1305';
  readonly keyBytes: 16 | 32;
}

const suites: readonly Suite[] = [
  { id: 0x1301, hash: 'sha256', hashBytes: 32, aead: 'aes-128-gcm', keyBytes: 16 },
  { id: 0x1302, hash: 'sha384', hashBytes: 48, aead: 'aes-256-gcm', keyBytes: 32 },
  { id: 0x1303, hash: 'sha256', hashBytes: 32, aead: 'chacha20-poly1305', keyBytes: 32 },
];

/** Undefined for one that TLS 1.3 does not have. */
export function suiteOf(id: number): Suite | undefined {
  return suites.find((suite) => suite.id === id);
}
