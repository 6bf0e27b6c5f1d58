/** The TLS 1.3 numbers used here, under their names in RFC 8446 (the hybrid group: draft-ietf-tls-ecdhe-mlkem). */

export const recordType = { changeCipherSpec: 20, alert: 21, handshake: 22, applicationData: 23 } as const;

export const messageType = {
  clientHello: 1,
  serverHello: 2,
  newSessionTicket: 4,
  encryptedExtensions: 8,
  certificate: 11,
  certificateVerify: 15,
  finished: 20,
  keyUpdate: 24,
  compressedCertificate: 25,
} as const;

export const extension = {
  serverName: 0,
  alpn: 16,
  supportedVersions: 43,
  keyShare: 51,
} as const;

export const group = { x25519: 0x001d, x25519MlKem768: 0x11ec } as const;

export const signature = { ed25519: 0x0807 } as const;

export const alert = {
  closeNotify: 0,
  unexpectedMessage: 10,
  badRecordMac: 20,
  recordOverflow: 22,
  handshakeFailure: 40,
  badCertificate: 42,
  illegalParameter: 47,
  decodeError: 50,
  decryptError: 51,
  protocolVersion: 70,
  internalError: 80,
} as const;

export const tls13 = 0x0304;
/** The version number that TLS 1.3 writes in the field of older versions. */
export const legacyVersion = 0x0303;
/** Type, version and length of a record. */
export const recordHeaderBytes = 5;
/** Type and length of a handshake message. */
export const messageHeaderBytes = 4;
/** The maximum size of the plaintext in a record, in bytes. */
export const plaintextMax = 16_384;
/** The maximum size of what follows the header of an encrypted record, in bytes. */
export const ciphertextMax = plaintextMax + 256;
/** A whole record, which some middleboxes expect after a hello. */
export const changeCipherSpecRecord: Uint8Array = Uint8Array.of(recordType.changeCipherSpec, 3, 3, 0, 1, 1);
