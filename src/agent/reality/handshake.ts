/**
 * The agent's side of REALITY on a TCP connection: an ordinary-looking TLS 1.3 handshake whose certificate shows
 * whether the service or the target answered. Implements the client of `docs/reality.md`.
 */
import type { X509Certificate } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { authKeyOf, sealClaim, shortIdFromHex, type SessionClaim } from '../../channel/reality/auth.js';
import { boundKeyOf, isSignedBy } from '../../channel/reality/certificate.js';
import { signedContent } from '../../channel/reality/server-flight.js';
import {
  alert,
  changeCipherSpecRecord,
  legacyVersion,
  messageType,
  recordType,
  signature,
} from '../../channel/tls/codes.js';
import { createClientShares } from '../../channel/tls/key-exchange.js';
import { applicationSecrets, createTranscript, finishedMac, handshakeSecrets } from '../../channel/tls/key-schedule.js';
import { createRecordCipher } from '../../channel/tls/record-cipher.js';
import { createRecordReader } from '../../channel/tls/record-reader.js';
import { createTlsStream } from '../../channel/tls/tls-stream.js';
import { message, uint, vector } from '../../channel/tls/vectors.js';
import { timedOut, withDeadline } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { err, ok, type Result } from '../../kernel/result.js';
import { buildBrowserHello } from './browser-hello.js';
import { hasItsKey, isTrusted, readProof } from './certificates.js';
import { fault, isFault, readFlight, readHello, type Fault, type Flight } from './flight.js';
import type { RealityAccess } from '../../channel/reality/endpoint.js';
import { leave, visit } from './visit.js';

/** The client's program version, as stated in its claim. */
const version: SessionClaim['version'] = [1, 0, 0];

/**
 * Opens REALITY on a connection. The stream inside ends with the connection; on a failure the connection is closed.
 * @param timeoutMs for the whole handshake
 * @param roots authorities of targets' certificates; by default those that Node knows
 * @returns the stream inside, or what went wrong, for the log
 */
export async function openReality(
  socket: Duplex,
  access: RealityAccess,
  clock: Clock,
  timeoutMs: number,
  roots?: () => readonly X509Certificate[],
): Promise<Result<Duplex, string>> {
  const opened = await withDeadline(open(socket, access, clock, roots), timeoutMs);
  if (opened !== timedOut && opened.ok) return opened;
  await leave(socket);
  return opened === timedOut ? err(`no complete handshake within ${timeoutMs} ms`) : opened;
}

async function open(
  socket: Duplex,
  access: RealityAccess,
  clock: Clock,
  roots: (() => readonly X509Certificate[]) | undefined,
): Promise<Result<Duplex, string>> {
  const shares = createClientShares();
  const hello = buildBrowserHello(access.serverName, shares);
  const authKey = authKeyOf(shares.x25519, access.publicKey, hello.random);
  if (authKey === undefined) return err('pbk is not a usable X25519 public key');
  const claim = { version, seconds: Math.floor(clock.now() / 1000), shortId: shortIdFromHex(access.shortId) };
  hello.bytes.set(sealClaim(authKey, hello.random, hello.bytes, claim), hello.sessionIdAt);
  // The first record has the version of TLS 1.0, as browsers write it.
  socket.write(Buffer.concat([uint(1, recordType.handshake), uint(2, 0x0301), vector(2, hello.bytes)]));

  /** In the clear until there are keys. */
  let alertRecord = plainAlert;
  const refuse = (why: Fault): Result<Duplex, string> => {
    if (why.alert !== undefined) socket.write(alertRecord(why.alert));
    return err(why.text);
  };
  const records = createRecordReader();
  const serverHello = await readHello(socket, records);
  if (isFault(serverHello)) return refuse(serverHello);
  const { suite } = serverHello;
  const shared = shares.finish(serverHello);
  if (shared === undefined) return refuse(fault('the key share of the answer is invalid', alert.illegalParameter));
  const transcript = createTranscript(suite);
  transcript.add(hello.bytes);
  transcript.add(serverHello.bytes);
  const secrets = handshakeSecrets(suite, shared, transcript.hash());
  const sendHandshake = createRecordCipher(suite, secrets.client);
  alertRecord = (code) => sendHandshake.seal(recordType.alert, Uint8Array.of(2, code));
  const flight = await readFlight(socket, records, serverHello, secrets, transcript);
  if (isFault(flight)) return refuse(flight);
  const answered = whoAnswered(flight, authKey, access.serverName, () =>
    isTrusted(flight.certificates, access.serverName, clock.now(), roots),
  );
  if (typeof answered !== 'string') return refuse(answered);

  const application = applicationSecrets(suite, secrets.master, transcript.hash());
  const finished = message(messageType.finished, finishedMac(suite, secrets.client, transcript.hash()));
  socket.write(Buffer.concat([changeCipherSpecRecord, sendHandshake.seal(recordType.handshake, finished)]));
  const stream = createTlsStream({
    socket,
    records,
    receive: createRecordCipher(suite, application.server),
    send: createRecordCipher(suite, application.client),
    tickets: 'ignored',
  });
  if (answered === 'service') return ok(stream);
  await visit(stream, access.serverName, flight.protocol);
  return err(
    `the certificate of ${access.serverName} was shown, so the target answered: pbk, sid, sni or this clock is wrong, or something stands between`,
  );
}

/** Who has proved the key of a certificate: the service, or a server that browsers trust. */
function whoAnswered(
  { certificates: [own = Buffer.alloc(0)], certificateHash, certificateVerify }: Flight,
  authKey: Uint8Array,
  serverName: string,
  isOfTarget: () => boolean,
): 'service' | 'target' | Fault {
  const [proof, signed] = [readProof(certificateVerify), signedContent(certificateHash)];
  const key = boundKeyOf(own, authKey);
  if (key !== undefined) {
    const isProved = proof?.scheme === signature.ed25519 && isSignedBy(key, signed, proof.bytes);
    return isProved ? 'service' : fault('the service did not prove the key of its certificate', alert.decryptError);
  }
  if (!isOfTarget()) {
    const text = 'the answering server has neither the certificate of the service nor one of a known authority';
    return fault(text, alert.badCertificate);
  }
  if (proof !== undefined && hasItsKey(own, signed, proof)) return 'target';
  const text = `the answering server shows a certificate of ${serverName} whose key it does not have`;
  return fault(text, alert.decryptError);
}

const plainAlert = (code: number): Buffer =>
  Buffer.concat([uint(1, recordType.alert), uint(2, legacyVersion), vector(2, Uint8Array.of(2, code))]);
