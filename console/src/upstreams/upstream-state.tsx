/** The health and the security of an upstream, as its list and its page show them. */
import type { ReactNode } from 'react';
import { securityText } from '../shared/forms/security.text.js';
import { State, type Mood } from '../shared/ui/state.js';
import type { Upstream } from './upstreams.js';
import { text } from './upstreams.text.js';

const healthMoods: Readonly<Record<Upstream['health'], Mood>> = { healthy: 'good', unhealthy: 'bad', unknown: 'idle' };

export function HealthOfUpstream({ health }: Pick<Upstream, 'health'>): ReactNode {
  return <State mood={healthMoods[health]}>{text.healths[health]}</State>;
}

export function securityOf({ tls, reality }: Upstream): string {
  if (tls !== null) return securityText.tls;
  return reality === null ? securityText.plain : securityText.reality;
}
