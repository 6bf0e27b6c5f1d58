/**
 * Passes on the public addresses that hellos report, if they differ from the recorded ones: at most once a minute and
 * six times an hour per node, because each is kept forever. Afterwards it passes on the newest report that had to wait.
 * The command decides what follows. Implements `NodeReportedAddressChanged` of `docs/contract/domain.md#generation`.
 */
import { isIPv4, isIPv6 } from 'node:net';
import type { Delivery } from '../../delivery/port.js';
import type { AgentHello } from '../../gen/svc/control/v1/session.js';
import { canonicalIp } from '../../kernel/addresses.js';
import type { Clock } from '../../kernel/clock.js';
import { limits } from '../../kernel/limits.js';
import { logsWarning, type Logger } from '../../kernel/logger.js';
import { hourMs, waitMs, withTime } from '../../kernel/spacing.js';

export type ReportAddress = (nodeId: string, ipv4: string | null, ipv6: string | null) => Promise<void>;

interface Entry {
  /** When reports were passed on, oldest first. */
  times: readonly number[];
  waiting: { readonly ipv4: string; readonly ipv6: string } | undefined;
}

export function createAddressReports(
  deps: { readonly delivery: Pick<Delivery, 'node'>; readonly clock: Clock; readonly logger: Logger },
  report: ReportAddress,
) {
  const spacing = limits.fleet.addressReports;
  /** One entry per node with a report within the last hour. */
  const entries = new Map<string, Entry>();

  const send = (nodeId: string, ipv4: string, ipv6: string): boolean => {
    const node = deps.delivery.node(nodeId);
    if (node === undefined) return false;
    // Empty means that the agent does not know the address, not that there is none.
    const v4 = ipv4 === '' ? node.public_ipv4 : ipv4;
    const v6 = ipv6 === '' ? node.public_ipv6 : ipv6;
    if (v4 === node.public_ipv4 && v6 === node.public_ipv6) return false;
    report(nodeId, v4, v6).catch(
      logsWarning(deps.logger, 'cannot record a reported public address', { node_id: nodeId }),
    );
    return true;
  };

  return {
    hello(nodeId: string, hello: Pick<AgentHello, 'publicIpv4' | 'publicIpv6'>): void {
      const reported = canonicalIp(hello.publicIpv4) ?? '';
      const ipv4 = isIPv4(reported) ? reported : '';
      const ipv6 = isIPv6(hello.publicIpv6) ? (canonicalIp(hello.publicIpv6) ?? '') : '';
      const entry: Entry = entries.get(nodeId) ?? { times: [], waiting: undefined };
      const now = deps.clock.monotonic();
      const mustWait = waitMs(entry.times, now, spacing) > 0;
      // In either case the newest report counts, not one that waited before it.
      entry.waiting = mustWait ? { ipv4, ipv6 } : undefined;
      if (mustWait || !send(nodeId, ipv4, ipv6)) return;
      entry.times = withTime(entry.times, now, spacing);
      entries.set(nodeId, entry);
    },
    /** Passes on due reports, and forgets nodes whose hour is over. */
    sweep(): void {
      const now = deps.clock.monotonic();
      for (const [nodeId, entry] of entries) {
        if (waitMs(entry.times, now, spacing) > 0) continue;
        const { waiting } = entry;
        entry.waiting = undefined;
        if (waiting !== undefined && send(nodeId, waiting.ipv4, waiting.ipv6)) {
          entry.times = withTime(entry.times, now, spacing);
        } else if (now - (entry.times.at(-1) ?? 0) >= hourMs) entries.delete(nodeId);
      }
    },
  };
}
