/** What is left of a deleted node beside the log. */
import type { Delivery } from '../delivery/port.js';
import { errorText } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import type { TelemetryService } from '../telemetry/telemetry.js';

/** Deletes the telemetry of deleted nodes. Ending their sessions is not done here: the agent transport listens for itself. */
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
