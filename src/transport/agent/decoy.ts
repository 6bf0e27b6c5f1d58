/**
 * What a handshake for a node that does not exist is checked against, so that it costs the same work and gets the same
 * answer: a verifier that no PSK matches, sealed under a key that exists nowhere else and opened each time.
 * Implements `docs/contract/agent-protocol.md#opensession` ("get the same answer after the same work").
 */
import { randomBytes } from 'node:crypto';
import { createDummyVerifier } from '../../security/psk.js';
import type { PskVerifier } from '../../security/psk.js';
import { openWith, sealWith } from '../../security/sealing.js';

export interface Decoy {
  open(): PskVerifier;
}

export function createDecoy(): Decoy {
  const dataKey = randomBytes(32);
  const context = { stream: 'decoy', resourceId: 'decoy', field: 'psk_verifier' };
  const verifier = createDummyVerifier();
  const sealed = sealWith(dataKey, 'decoy', Buffer.concat([verifier.nodeStaticPublic, verifier.psk]), context);
  return {
    open() {
      openWith(dataKey, sealed, context);
      return verifier;
    },
  };
}
