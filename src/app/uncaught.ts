/**
 * Uncaught exceptions. The process survives only two kinds, neither of which touches the service's state:
 * - node:http2 was asked to answer on a stream that its peer has ended, which a stranger can cause;
 * - the client package of EventStoreDB lost its node and awaits neither its second search for the leader nor the start
 *   of a call on the channel that it has just closed; it has informed the callers.
 * Everything else is a bug after which the state of this process cannot be trusted: the process ends.
 */
import { errorText } from '../kernel/errors.js';
import type { LogFields, Logger } from '../kernel/logger.js';
import { counter, type NumberSource } from '../instance/metrics.js';

interface FatalLogger extends Logger {
  fatal(fields: LogFields, message: string): void;
}

export interface UncaughtErrors {
  metrics(): readonly NumberSource[];
}

/** The texts of the client package, its only sign of these errors. */
const lostNode = /^(Failed to discover after \d+ attempts\.|Channel has been shut down)$/;

/** Installs the process's handlers. @param end ends the process */
export function handleUncaught(logger: FatalLogger, end: () => void): UncaughtErrors {
  let survived = 0;
  const fatal = (error: unknown, message: string): void => {
    logger.fatal({ error: errorText(error), stack: error instanceof Error ? error.stack : undefined }, message);
    end();
  };
  const survive = (error: Error, message: string): void => {
    survived += 1;
    logger.error({ error: errorText(error), stack: error.stack }, message);
  };
  process.on('unhandledRejection', (error) => {
    if (!(error instanceof Error && lostNode.test(error.message))) return fatal(error, 'unhandled rejection');
    survive(error, 'the client of the event store lost its node and did not await its own search for another');
  });
  process.on('uncaughtException', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ERR_HTTP2_INVALID_STREAM') return fatal(error, 'uncaught exception');
    survive(error, 'an answer to a stream that has ended was not sent');
  });
  return {
    metrics: () => [
      counter(
        'svc_survived_exceptions_total',
        'Uncaught errors of libraries that were survived: answers to HTTP/2 streams that had ended, and a lost node of the event store.',
        () => survived,
      ),
    ],
  };
}

/**
 * Writes Node's warnings to the service's log instead of standard error, for the rest of the process. One is left out:
 * in each TLS handshake with an EventStoreDB whose URL has IP addresses, the gRPC client names the server by its IP
 * address, which Node deprecates (DEP0123) and an operator cannot change.
 */
export function logWarnings(logger: Pick<Logger, 'warn'>): void {
  process.removeAllListeners('warning');
  process.on('warning', (warning: Error & { readonly code?: string }) => {
    if (warning.code === 'DEP0123') return;
    logger.warn({ warning: warning.name, code: warning.code, stack: warning.stack }, warning.message);
  });
}
