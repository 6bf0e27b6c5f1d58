/**
 * The handshake of the control session as data, in the notation of Noise (revision 34, section 7). `handshake.ts` runs
 * patterns of two messages that never send a static key; the service uses KKpsk0 only.
 */
type Token = 'psk' | 'e' | 'ee' | 'es' | 'se' | 'ss';

export interface HandshakePattern {
  readonly protocolName: string;
  /** Whether each side's static public key is known to the other beforehand. */
  readonly initiatorStaticKnown: boolean;
  readonly responderStaticKnown: boolean;
  readonly messages: readonly [readonly Token[], readonly Token[]];
}

/** `docs/contract/agent-protocol.md#opensession`. */
export const kkPsk0: HandshakePattern = {
  protocolName: 'Noise_KKpsk0_25519_ChaChaPoly_SHA256',
  initiatorStaticKnown: true,
  responderStaticKnown: true,
  messages: [
    ['psk', 'e', 'es', 'ss'],
    ['e', 'ee', 'se'],
  ],
};
