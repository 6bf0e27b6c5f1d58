/** Keeps the last lines of the agent's log for a diagnosis, in memory. */
import { timestamp, type Clock } from '../../kernel/clock.js';
import { limits } from '../../kernel/limits.js';
import type { LogFields, Logger } from '../../kernel/logger.js';

export interface LastLines {
  /** Writes to the given logger, and keeps what it writes. */
  readonly logger: Logger;
  /** Oldest first; without debug lines. */
  lines(): readonly string[];
}

/** The agent logs no secret; a PSK that gets into its log some other way, such as inside an error, is masked. */
const psk = /svcpsk1_[\w-]*/g;

export function keepLastLines(logger: Logger, clock: Clock): LastLines {
  const kept: (readonly [at: number, level: string, fields: LogFields, message: string])[] = [];
  const keeping =
    (level: 'info' | 'warn' | 'error'): Logger['info'] =>
    (fields, message) => {
      kept.push([clock.now(), level, fields, message]);
      if (kept.length > limits.agent.diagnostics.logLines) kept.shift();
      logger[level](fields, message);
    };
  return {
    logger: {
      debug: (fields, message) => logger.debug(fields, message),
      info: keeping('info'),
      warn: keeping('warn'),
      error: keeping('error'),
    },
    lines: () =>
      kept.map(([at, level, fields, message]) => {
        const more = Object.keys(fields).length === 0 ? '' : ` ${JSON.stringify(fields)}`;
        return `${timestamp(at)} ${level} ${message}${more}`.replace(psk, 'svcpsk1_***');
      }),
  };
}
