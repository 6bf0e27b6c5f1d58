/**
 * Deletes what a revocation leaves behind: the data key of a replaced PSK verifier, the telemetry of a deleted node.
 * Ending the sessions is not done here: the agent transport listens for itself.
 */
import type { Delivery } from '../delivery/port.js';
import { errorText } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import type { Keyring } from '../security/keyring.js';
import type { TelemetryService } from '../telemetry/telemetry.js';

/** Makes every replaced verifier unreadable, whichever instance replaced it, also just before a crash. */
export function shredReplacedVerifiers(
  delivery: Pick<Delivery, 'onRevoked'>,
  keyring: Pick<Keyring, 'shred'>,
  logger: Logger,
): void {
  delivery.onRevoked((_nodeId, replaced) => {
    if (replaced === undefined) return;
    keyring.shred(replaced.key_id).catch((error: unknown) => {
      logger.warn({ error: errorText(error) }, 'a replaced PSK verifier could not be shredded');
    });
  });
}

export function forgetDeletedNodes(
  delivery: Pick<Delivery, 'onRevoked' | 'node'>,
  telemetry: Pick<TelemetryService, 'forget'>,
  logger: Logger,
): void {
  delivery.onRevoked((nodeId) => {
    if (delivery.node(nodeId) !== undefined) return;
    telemetry.forget([nodeId]).catch((error: unknown) => {
      logger.warn({ error: errorText(error), node_id: nodeId }, 'the telemetry of a deleted node could not be deleted');
    });
  });
}
