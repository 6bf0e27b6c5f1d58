/**
 * A gateway that also starts on a log which cannot be followed to its end: an event of a newer release, a broken log
 * chain, an incomplete command. It then refuses every command; the followers say why the instance is read-only.
 */
import type { Aggregate, DecidingState } from '../commands/aggregate.js';
import { asServiceError } from '../commands/deciding-fold.js';
import type { GatewayOptions } from '../commands/gateway.js';
import { createGateway } from '../commands/gateway.js';
import type { Gateway } from '../commands/port.js';
import { BrokenChainError } from '../domain/log-chain/links.js';
import { UnknownEventError } from '../domain/log/unknown-event.js';
import { BrokenLogError } from '../storage/follow.js';

/** @throws ServiceError `unavailable` */
export async function startGateway<State extends DecidingState, Command>(
  aggregate: Aggregate<State, Command>,
  options: GatewayOptions,
): Promise<Gateway<State, Command>> {
  try {
    return await createGateway(aggregate, options);
  } catch (error) {
    const readOnly = [UnknownEventError, BrokenChainError, BrokenLogError].some((kind) => error instanceof kind);
    if (!readOnly) throw error;
    const refusal = asServiceError(error);
    return {
      execute: () => Promise.reject(refusal),
      read: () => Promise.reject(refusal),
      close: () => Promise.resolve(),
    };
  }
}
