/**
 * Node's warnings, in the service's log instead of on standard error. One is left out: the gRPC client names the server by
 * its IP address in each TLS handshake with an EventStoreDB whose URL has IP addresses, which node deprecates (DEP0123) and
 * an operator cannot change.
 */
import type { Logger } from '../kernel/logger.js';

/** Takes the place of node's own printing of warnings, for the rest of the process. */
export function logWarnings(logger: Pick<Logger, 'warn'>): void {
  process.removeAllListeners('warning');
  process.on('warning', (warning: Error & { readonly code?: string }) => {
    if (warning.code === 'DEP0123') return;
    logger.warn({ warning: warning.name, code: warning.code, stack: warning.stack }, warning.message);
  });
}
