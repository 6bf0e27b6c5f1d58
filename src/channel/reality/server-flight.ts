/**
 * The messages in which a TLS 1.3 server proves its identity, from EncryptedExtensions to Finished (RFC 8446, sections
 * 4.3 and 4.4), with a certificate for one client. `src/agent/reality/` reads them on the client's side.
 */
import { messageType, signature } from '../tls/codes.js';
import type { TemporaryIdentity } from './certificate.js';
import { finishedMac, type Transcript } from '../tls/key-schedule.js';
import type { Suite } from '../tls/suites.js';
import { message, uint, vector } from '../tls/vectors.js';

/**
 * The four messages of the flight after a ServerHello. Adds each to the transcript.
 * @param serverSecret handshake traffic secret of the server
 */
export function buildServerFlight(
  suite: Suite,
  transcript: Transcript,
  serverSecret: Uint8Array,
  identity: TemporaryIdentity,
  authKey: Uint8Array,
): readonly Buffer[] {
  const say = (bytes: Buffer): Buffer => {
    transcript.add(bytes);
    return bytes;
  };
  const none = vector(2);
  const entry = Buffer.concat([vector(3, identity.certificateFor(authKey)), none]);
  return [
    say(message(messageType.encryptedExtensions, none)),
    say(message(messageType.certificate, vector(1), vector(3, entry))),
    say(
      message(
        messageType.certificateVerify,
        uint(2, signature.ed25519),
        vector(2, identity.sign(signedContent(transcript.hash()))),
      ),
    ),
    say(message(messageType.finished, finishedMac(suite, serverSecret, transcript.hash()))),
  ];
}

/** The bytes that a server signs in its CertificateVerify. */
export function signedContent(transcriptHash: Uint8Array): Buffer {
  const context = Buffer.from('TLS 1.3, server CertificateVerify', 'latin1');
  return Buffer.concat([Buffer.alloc(64, 0x20), context, Buffer.alloc(1), transcriptHash]);
}
