/**
 * The text of a join token, for both sides. It is the PSK of a node that does not exist yet, under the id of the token.
 * Implements `docs/contract/joining.md#join-tokens`, "The token".
 */
import { joinIdOf } from '../../kernel/ids.js';
import { err, ok, type Result } from '../../kernel/result.js';
import { agentKeysFrom, encodeControlPsk, type AgentKeys } from './control-psk.js';

const prefix = 'svcjoin1_';
const idBytes = 16;
const secretEnd = idBytes + 32;
/** 80 bytes are 107 characters of unpadded base64url. */
const pattern = /^svcjoin1_[A-Za-z0-9_-]{107}$/;

interface JoinToken {
  /** UUID. */
  readonly id: string;
  /** 32 bytes. */
  readonly secret: Uint8Array;
  /** The service's X25519 public key, 32 bytes. */
  readonly servicePublic: Uint8Array;
}

export function encodeJoinToken({ id, secret, servicePublic }: JoinToken): string {
  const bytes = Buffer.concat([Buffer.from(id.replaceAll('-', ''), 'hex'), secret, servicePublic]);
  const text = prefix + bytes.toString('base64url');
  bytes.fill(0);
  return text;
}

/** What a machine needs for the handshake; the error says what was expected and never repeats the input. */
export function joinKeysFrom(token: string): Result<{ readonly nodeId: string; readonly keys: AgentKeys }, string> {
  const bytes = Buffer.from(pattern.test(token) ? token.slice(prefix.length) : '', 'base64url');
  // The last character carries two unused bits. They must be zero, so that a token has one spelling.
  if (bytes.length === 0 || prefix + bytes.toString('base64url') !== token) {
    return err('expected a join token: svcjoin1_ followed by 107 characters of base64url');
  }
  const id = bytes
    .subarray(0, idBytes)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  const [secret, servicePublic] = [bytes.subarray(idBytes, secretEnd), bytes.subarray(secretEnd)];
  const keys = agentKeysFrom(encodeControlPsk({ secret, servicePublic }));
  bytes.fill(0);
  return keys.ok ? ok({ nodeId: joinIdOf(id), keys: keys.value }) : keys;
}
