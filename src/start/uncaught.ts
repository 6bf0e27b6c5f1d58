/**
 * What nobody caught. The process survives one kind alone: node:http2 was asked to answer on a stream that its peer has
 * ended, which touches no state of the service, and which a stranger can bring about. Everything else is a bug after which
 * the state of this process cannot be trusted, while the event log can: the process ends.
 */
import { errorText } from '../kernel/errors.js';
import type { LogFields, Logger } from '../kernel/logger.js';
import type { NumberSource } from '../operations/metrics.js';

interface FatalLogger extends Logger {
  fatal(fields: LogFields, message: string): void;
}

export interface UncaughtErrors {
  metrics(): readonly NumberSource[];
}

/** Installs the handlers of the process. @param end ends the process */
export function handleUncaught(logger: FatalLogger, end: () => void): UncaughtErrors {
  let survived = 0;
  const fatal = (error: unknown, message: string): void => {
    logger.fatal({ error: errorText(error), stack: error instanceof Error ? error.stack : undefined }, message);
    end();
  };
  process.on('unhandledRejection', (error) => fatal(error, 'unhandled rejection'));
  process.on('uncaughtException', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ERR_HTTP2_INVALID_STREAM') return fatal(error, 'uncaught exception');
    survived += 1;
    logger.error({ error: errorText(error), stack: error.stack }, 'an answer to a stream that has ended was not sent');
  });
  return {
    metrics: () => [
      {
        type: 'counter',
        name: 'svc_survived_exceptions_total',
        help: 'Answers to HTTP/2 streams that had ended, which the library reported as an uncaught exception.',
        read: () => survived,
      },
    ],
  };
}
