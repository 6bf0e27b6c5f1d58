/**
 * The verifier for a node that does not exist, so that its handshake costs the same work and gets the same answer. No
 * PSK matches it; it is sealed under a throw-away key and opened for each handshake, as a real one is.
 * Implements `docs/contract/agent-protocol.md#opensession` ("the same answer after the same work").
 */
import { randomBytes } from 'node:crypto';
import { createDummyVerifier } from '../../security/psk.js';
import type { PskVerifier } from '../../security/psk.js';
import { openWith, sealWith } from '../../security/sealing.js';

interface Decoy {
  open(): PskVerifier;
}

export function createDecoy(): Decoy {
  const dataKey = randomBytes(32);
  const context = { installationId: '', stream: 'decoy', resourceId: 'decoy', field: 'psk_verifier' };
  const verifier = createDummyVerifier();
  const sealed = sealWith(dataKey, 'decoy', Buffer.concat([verifier.nodeStaticPublic, verifier.psk]), context);
  return {
    open() {
      openWith(dataKey, sealed, context);
      return verifier;
    },
  };
}
