/** The agent's report about its machine: CPU and memory usage, addresses of its interfaces. */
import { cpus, freemem, networkInterfaces, totalmem, type NetworkInterfaceInfo } from 'node:os';
import ipaddr from 'ipaddr.js';
import { limits } from '../kernel/limits.js';

export interface HostUsage {
  /** 0..1, over all processors together since the last call. */
  readonly cpu: number;
  /** 0..1. */
  readonly memory: number;
}

/** Returns a function that measures the usage since its previous call. */
export function createUsageMeter(): () => HostUsage {
  let last = processorTimes();
  return () => {
    const now = processorTimes();
    const total = now.total - last.total;
    const idle = now.idle - last.idle;
    last = now;
    return { cpu: total > 0 ? ratio(1 - idle / total) : 0, memory: ratio(1 - freemem() / totalmem()) };
  };
}

function ratio(value: number): number {
  return Number.isFinite(value) ? Math.min(1, Math.max(0, value)) : 0;
}

function processorTimes(): { readonly total: number; readonly idle: number } {
  let total = 0;
  let idle = 0;
  for (const { times } of cpus()) {
    total += times.user + times.nice + times.sys + times.irq + times.idle;
    idle += times.idle;
  }
  return { total, idle };
}

interface HostAddresses {
  /** Empty if no interface has a global address; the service then uses the node's configured address. */
  readonly publicIpv4: string;
  readonly publicIpv6: string;
  readonly detected: readonly string[];
}

/** The addresses of the machine's interfaces, except loopback and link-local ones; none where they are unknown. */
export function hostAddresses(): HostAddresses {
  const addresses = interfaces().filter(
    ({ internal, address }) => !internal && !address.startsWith('fe80:') && !address.startsWith('169.254.'),
  );
  const ipv4 = addresses.find(
    ({ family, address }) => family === 'IPv4' && ipaddr.parse(address).range() === 'unicast',
  );
  // 2000::/3 is global unicast; 2001:db8::/32 in it is reserved for documentation.
  const ipv6 = addresses.find(
    ({ family, address }) => family === 'IPv6' && /^[23]/.test(address) && !/^2001:0?db8:/.test(address),
  );
  return {
    publicIpv4: ipv4?.address ?? '',
    publicIpv6: ipv6?.address ?? '',
    detected: [...new Set(addresses.map(({ address }) => address))].slice(0, limits.agent.detectedAddresses),
  };
}

/** A sandbox may deny the agent the AF_NETLINK socket that this needs. The agent relays anyway. */
function interfaces(): readonly NetworkInterfaceInfo[] {
  try {
    return Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  } catch {
    return [];
  }
}
