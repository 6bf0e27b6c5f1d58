/** The text forms of keys, short ids and server names, in the service's settings and in the endpoints of agents. */
import { x25519KeyBytes } from '../../kernel/crypto/crypto.js';

const namePattern = /^(?=.{1,253}$)[a-z0-9_-]+(\.[a-z0-9_-]+)*$/i;
const shortIdPattern = /^([0-9a-f]{2}){1,8}$/i;

/** The 32 bytes of an X25519 key, from base64url without padding; undefined for any other text. */
export function readKey(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.length === x25519KeyBytes && bytes.toString('base64url') === text ? bytes : undefined;
}

/** An even number of 2 to 16 hexadecimal digits. */
export function isShortId(text: string): boolean {
  return shortIdPattern.test(text);
}

/** The same for hops and upstreams, whose short id may be empty: eight zeros. */
export function isHopShortId(text: string): boolean {
  return text === '' || isShortId(text);
}

export function isServerName(text: string): boolean {
  return namePattern.test(text);
}
