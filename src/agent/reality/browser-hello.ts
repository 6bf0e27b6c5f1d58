/**
 * A ClientHello with the offers of a common browser, so that an agent does not stand out among the target's visitors.
 * Its session id is left empty for REALITY to fill. The values follow Chrome since 2024: GREASE (RFC 8701), extensions
 * in random order, a hybrid key share, a fake Encrypted Client Hello.
 */
import { randomBytes, randomInt } from 'node:crypto';
import { sessionIdBytes } from '../../channel/reality/auth.js';
import { extension, group, legacyVersion, messageType, tls13 } from '../../channel/tls/codes.js';
import type { ClientShares } from '../../channel/tls/key-exchange.js';
import { extensionField, message, uint, vector } from '../../channel/tls/vectors.js';

export interface BrowserHello {
  /** The message, with 32 zeros as its session id. */
  readonly bytes: Buffer;
  readonly random: Buffer;
  /** Offset of the session id in `bytes`. */
  readonly sessionIdAt: number;
}

const cipherSuites = [
  0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014, 0x009c, 0x009d, 0x002f,
  0x0035,
];
const signatureAlgorithms = [0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601];
const groupsBesideKnown = [0x0017, 0x0018];
/** Preceded by the message's type, length and version, its random, and the length of the session id. */
const sessionIdAt = 4 + 2 + 32 + 1;

const uint16s = (values: readonly number[]): Buffer => Buffer.concat(values.map((value) => uint(2, value)));

/** One of the sixteen meaningless values that must be ignored. */
const grease = (): number => randomInt(16) * 0x1010 + 0x0a0a;

export function buildBrowserHello(serverName: string, shares: ClientShares): BrowserHello {
  const random = randomBytes(32);
  const [firstGrease, groupGrease, versionGrease] = [grease(), grease(), grease()];
  const drawn = grease();
  // No two extensions may have the same type.
  const lastGrease = drawn === firstGrease ? drawn ^ 0x1010 : drawn;
  const name = Buffer.from(serverName, 'latin1');
  const h2 = vector(1, Buffer.from('h2'));
  const ordered = [
    extensionField(extension.serverName, vector(2, uint(1, 0), vector(2, name))),
    extensionField(0x0017),
    extensionField(0xff01, vector(1)),
    extensionField(0x000a, vector(2, uint16s([groupGrease, group.x25519MlKem768, group.x25519, ...groupsBesideKnown]))),
    extensionField(0x000b, vector(1, Uint8Array.of(0))),
    extensionField(0x0023),
    extensionField(extension.alpn, vector(2, h2, vector(1, Buffer.from('http/1.1')))),
    extensionField(0x0005, Uint8Array.of(1), vector(2), vector(2)),
    extensionField(0x000d, vector(2, uint16s(signatureAlgorithms))),
    extensionField(0x0012),
    extensionField(
      extension.keyShare,
      vector(
        2,
        ...share(groupGrease, Uint8Array.of(0)),
        ...share(group.x25519MlKem768, shares.hybrid),
        ...share(group.x25519, shares.x25519.publicKey),
      ),
    ),
    extensionField(0x002d, vector(1, Uint8Array.of(1))),
    extensionField(extension.supportedVersions, vector(1, uint16s([versionGrease, tls13, legacyVersion]))),
    // Accepts Brotli-compressed certificates.
    extensionField(0x001b, vector(1, uint(2, 2))),
    extensionField(0x44cd, vector(2, h2)),
    extensionField(0xfe0d, pretendedEch()),
  ];
  const bytes = message(
    messageType.clientHello,
    uint(2, legacyVersion),
    random,
    vector(1, Buffer.alloc(sessionIdBytes)),
    vector(2, uint16s([grease(), ...cipherSuites])),
    vector(1, Uint8Array.of(0)),
    vector(2, extensionField(firstGrease), ...shuffled(ordered), extensionField(lastGrease, Uint8Array.of(0))),
  );
  return { bytes, random, sessionIdAt };
}

const share = (id: number, key: Uint8Array): readonly Buffer[] => [uint(2, id), vector(2, key)];

/** What a browser without a key for Encrypted Client Hello sends: HKDF-SHA256 with AES-128-GCM, and random bytes. */
function pretendedEch(): Buffer {
  const payload = randomBytes(144 + 32 * randomInt(4));
  return Buffer.concat([
    Uint8Array.of(0),
    uint16s([1, 1]),
    randomBytes(1),
    vector(2, randomBytes(32)),
    vector(2, payload),
  ]);
}

function shuffled<T>(items: readonly T[]): readonly T[] {
  const rest = [...items];
  return items.flatMap(() => rest.splice(randomInt(rest.length), 1));
}
