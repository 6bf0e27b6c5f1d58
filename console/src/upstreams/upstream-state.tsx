/** The health and the security of an upstream, as its list and its page show them. */
import type { ReactNode } from 'react';
import { securityText } from '../shared/forms/security.text.js';
import { StateOf } from '../shared/ui/state-of.js';
import type { Upstream } from './upstreams.js';

export function HealthOfUpstream({ health }: Pick<Upstream, 'health'>): ReactNode {
  return <StateOf kind="upstream" is={health} />;
}

export function securityOf({ tls, reality }: Upstream): string {
  if (tls !== null) return securityText.tls;
  return reality === null ? securityText.plain : securityText.reality;
}
