/** The security of an upstream in a word. Pure. */
import { securityText } from '../shared/forms/security.text.js';
import type { Upstream } from './upstreams.js';

export function securityOf({ tls, reality }: Upstream): string {
  if (tls !== null) return securityText.tls;
  return reality === null ? securityText.plain : securityText.reality;
}
