/**
 * The agent checks itself and what it dials, for RUN_DIAGNOSTICS. Implements "Diagnostics" of
 * `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { arch, freemem, release, totalmem, type, uptime } from 'node:os';
import { ConfigApplyStatus, type ConfigApplyReport } from '../../gen/svc/control/v1/config.js';
import type { DiagnosticsItem, DiagnosticsReport } from '../../gen/svc/control/v1/diagnostics.js';
import type { Clock } from '../../kernel/clock.js';
import { openDescriptors } from '../../kernel/files.js';
import { limits } from '../../kernel/limits.js';
import type { Gateway } from '../gateway.js';
import { reportOf } from './report.js';

/** How far the service's clock is ahead of this one, as found when a session was opened. In milliseconds. */
export interface ClockOffset {
  readonly ms: number;
  /** Half of the time that the answer took. */
  readonly withinMs: number;
  /** Monotonic. */
  readonly measuredAt: number;
}

interface DiagnosisSources {
  readonly agentVersion: string;
  readonly gateway: Pick<Gateway, 'applied' | 'runtimeListeners' | 'probe'>;
  readonly clock: Clock;
  readonly lastReport: () => ConfigApplyReport | undefined;
  readonly logLines: () => readonly string[];
}

/** A smaller share of free memory, or a larger share of used descriptors, needs attention. */
const lowMemory = 0.05;
const manyDescriptors = 0.9;

/** @param signal ends all probes @returns within its bounds, after at most 20 seconds */
export async function diagnose(
  { agentVersion, gateway, clock, lastReport, logLines }: DiagnosisSources,
  offset: ClockOffset | undefined,
  signal: AbortSignal,
): Promise<DiagnosticsReport> {
  const [probes, descriptors] = await Promise.all([gateway.probe(signal), openDescriptors()]);
  const system = `${type()} ${release()} ${arch()}`;
  const items: readonly DiagnosticsItem[] = [
    { name: 'versions', value: `${agentVersion}, Node ${process.version}, ${system}`, ok: true },
    {
      name: 'uptime',
      value: `${Math.floor(process.uptime())} s; of the machine ${Math.floor(uptime())} s`,
      ok: true,
    },
    memory(),
    {
      name: 'descriptors',
      value: descriptors === undefined ? 'not known here' : `${descriptors.open} of ${descriptors.limit}`,
      ok: descriptors === undefined || descriptors.open < manyDescriptors * descriptors.limit,
    },
    clockItem(offset, clock),
    configuration(gateway, lastReport()),
    ...gateway.runtimeListeners().map(({ transport, listenAddr, listenPort, state, activeSessions = 0n }) => ({
      name: `listener ${transport} ${listenAddr}:${listenPort}`,
      value: state === 'running' ? `running, ${activeSessions} sessions` : state,
      ok: state === 'running',
    })),
    ...probes,
  ];
  return reportOf(items, logLines(), clock.now());
}

function memory(): DiagnosticsItem {
  const mebibytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`;
  const { rss, heapUsed } = process.memoryUsage();
  const machine = `${mebibytes(freemem())} of ${mebibytes(totalmem())} of the machine are free`;
  const value = `${mebibytes(rss)}, ${mebibytes(heapUsed)} of it in use by its heap; ${machine}`;
  return { name: 'memory', value, ok: freemem() > lowMemory * totalmem() };
}

function clockItem(offset: ClockOffset | undefined, clock: Clock): DiagnosticsItem {
  if (offset === undefined) return { name: 'clock', value: 'never compared with the service', ok: false };
  const { ms, withinMs, measuredAt } = offset;
  const seconds = Math.round((clock.monotonic() - measuredAt) / 1000);
  const apart = `${Math.round(Math.abs(ms))} ms ${ms < 0 ? 'ahead of' : 'behind'} the service`;
  const value = `${apart}, give or take ${Math.round(withinMs)} ms, ${seconds} s ago`;
  return { name: 'clock', value, ok: Math.abs(ms) - withinMs <= limits.agent.clockSkewMs };
}

function configuration({ applied }: Pick<Gateway, 'applied'>, last: ConfigApplyReport | undefined): DiagnosticsItem {
  const runs = applied === undefined ? 'none runs' : `generation ${applied.generation} runs`;
  const isRejected = last?.status === ConfigApplyStatus.REJECTED;
  const [error] = last?.errors ?? [];
  const why = error === undefined ? '' : `: ${error.resourceType} ${error.resourceId} ${error.path}: ${error.message}`;
  const value = isRejected ? `${runs}, generation ${last.generation} was rejected${why}` : runs;
  return { name: 'configuration', value, ok: applied !== undefined && !isRejected };
}
