/** What the fleet is and carries now: rates of the last five minutes, and how much of it works. */
import type { ReactNode } from 'react';
import type { Stats } from '../shared/dashboard.js';
import { formatBytes, formatCount, formatRate, formatShare, none } from '../shared/ui/format.js';
import classes from './overview.module.css';
import { text } from './overview.text.js';
import { ratesOf } from './verdict.js';

export function Figures({ stats }: { readonly stats: Stats }): ReactNode {
  const { nodes, listeners, l4_chains: chains, traffic } = stats;
  const { toClients, fromClients, sessions, failed } = ratesOf(stats);
  const { ok, degraded, down, unknown } = chains.health;
  const of = (count: number): string => text.of(formatCount(count));
  return (
    <dl className={classes.figures}>
      <Figure name={text.working} value={formatCount(ok)} aside={of(ok + degraded + down + unknown)} />
      <Figure name={text.online} value={formatCount(nodes.online)} aside={of(nodes.total)} />
      <Figure name={text.listeners} value={formatCount(listeners.running)} aside={of(listeners.intended)} />
      <Figure name={text.sessions} value={formatCount(traffic.active_sessions)} aside={text.now} />
      <Figure name={text.started} value={formatRate(sessions)} aside={text.perMinute} />
      <Figure name={text.errors} value={failed === null ? none : formatShare(failed)} aside={text.recent5} />
      <Figure name={text.bytesOut} value={`${formatBytes(toClients)}/s`} />
      <Figure name={text.bytesIn} value={`${formatBytes(fromClients)}/s`} />
    </dl>
  );
}

interface FigureProps {
  readonly name: string;
  readonly value: string;
  readonly aside?: string;
}

function Figure({ name, value, aside }: FigureProps): ReactNode {
  return (
    <div className={classes.figure}>
      <dt>{name}</dt>
      <dd>
        {value} <small>{aside}</small>
      </dd>
    </div>
  );
}
