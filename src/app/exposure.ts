/**
 * Warns once, at startup, what the settings leave open to the network: passwords and tokens over plain HTTP, and
 * metrics for everybody. A proxy in front may take care of both, which the service cannot see. See
 * `docs/how-to/install.md`.
 */
import type { Logger } from '../kernel/logger.js';
import type { Config } from './config/config.js';

const loopback = /^(127\.|::1$|localhost$)/;

export function warnOfExposure({ http }: Pick<Config, 'http'>, logger: Logger): void {
  const { host, port } = http.listen;
  if (loopback.test(host)) return;
  const where = { host, port };
  if (http.tls === undefined)
    logger.warn(
      where,
      'REST is plain HTTP on an address that others can reach: set SVC_HTTP_TLS_CERT_FILE and SVC_HTTP_TLS_KEY_FILE, or put a TLS proxy in front',
    );
  if (http.metricsToken === undefined)
    logger.warn(
      where,
      '/metrics is open to everybody who reaches REST: set SVC_METRICS_TOKEN, or block it in the proxy',
    );
}
