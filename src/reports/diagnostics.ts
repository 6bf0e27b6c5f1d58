/**
 * The agents' answers to RUN_DIAGNOSTICS: the newest report of each node, in the read store, so that one instance may
 * receive it and another read it. The claims of commands show which reports were asked for. Implements "Diagnostics" of
 * `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { Counter } from 'prom-client';
import { startLoop } from '../kernel/background.js';
import { timestamp, type Clock } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import type { CollectionSpec, ReadStore } from '../storage/read-store.js';
import type { Diagnostics, DiagnosticsFacts, KeptDiagnostics } from './port.js';

const { keptMs } = limits.agent.diagnostics;
const removedAtOnce = 100;
const removeEveryMs = 60_000;
/** The only group, with all reports. */
const kind = 'report';
const spec: CollectionSpec = { name: 'node_diagnostics', version: 1, index: { group: 'kind', order: 'at' } };

type Stored = KeptDiagnostics & { readonly kind: typeof kind };

export interface DiagnosticsStore extends Diagnostics {
  /** Deletes the reports of deleted nodes. @throws ServiceError `unavailable` */
  forget(nodeIds: readonly string[]): Promise<void>;
  metrics(): readonly Counter[];
  close(): Promise<void>;
}

/** @typeParam Asked a RUN_DIAGNOSTICS that may still be answered */
export interface DiagnosticsDeps<Asked> {
  readonly readStore: Pick<ReadStore, 'collection'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The time to judge ages by before deleting (`store-clocks.ts`). */
  deletionTime(): number | undefined;
  /** How often old reports are deleted, in milliseconds. */
  readonly removeEveryMs?: number;
  /** False once the node is deleted. */
  exists(nodeId: string): boolean;
  agentVersion(nodeId: string): string | null;
  /** The requests that the node has not answered. @throws ServiceError `unavailable`, like the next */
  asked(nodeId: string): Promise<readonly Asked[]>;
  answered(asked: readonly Asked[]): Promise<void>;
}

/** @throws ServiceError `unavailable` */
export async function openDiagnostics<Asked>(deps: DiagnosticsDeps<Asked>): Promise<DiagnosticsStore> {
  const { clock, logger, exists } = deps;
  const reports = await deps.readStore.collection<Stored>(spec);
  const taken = new Counter({
    name: 'svc_agent_diagnostics_total',
    help: 'Diagnostics reports of agents: kept, dropped because nobody had asked for them, or lost because the read store was away',
    labelNames: ['outcome'],
    registers: [],
  });
  const outcomes = ['kept', 'not_asked_for', 'lost'] as const;
  for (const outcome of outcomes) taken.inc({ outcome }, 0);
  /** Nodes whose report is being stored, at most one of each. */
  const underWay = new Set<string>();

  async function keep(nodeId: string, { items, log }: DiagnosticsFacts): Promise<(typeof outcomes)[number]> {
    const at = timestamp(clock.now());
    const asked = await deps.asked(nodeId);
    if (asked.length === 0) return 'not_asked_for';
    const fields = { kind, at, agent_version: deps.agentVersion(nodeId), items, log } as const;
    await reports.set([{ id: nodeId, fields }]);
    // Last, so that whoever sees the answer finds the report.
    await deps.answered(asked);
    if (!exists(nodeId)) await reports.remove([nodeId]);
    return 'kept';
  }

  async function removeOld(): Promise<void> {
    const time = deps.deletionTime();
    if (time === undefined) return;
    const old = { groups: [kind], below: timestamp(time - keptMs), direction: 'asc', limit: removedAtOnce } as const;
    await reports.remove((await reports.find(old)).map(({ id }) => id));
  }
  const loop = startLoop(
    deps.removeEveryMs ?? removeEveryMs,
    removeOld,
    logsWarning(logger, 'old diagnostics of nodes could not be deleted'),
  );

  return {
    async take(nodeId, report) {
      if (underWay.has(nodeId)) return taken.inc({ outcome: 'not_asked_for' });
      underWay.add(nodeId);
      try {
        taken.inc({ outcome: await keep(nodeId, report) });
      } catch (error) {
        taken.inc({ outcome: 'lost' });
        logger.warn({ node_id: nodeId, error: errorText(error) }, 'the diagnostics of a node could not be kept');
      } finally {
        underWay.delete(nodeId);
      }
    },
    async of(nodeId) {
      const fields = (await reports.get(nodeId))?.fields;
      return fields === undefined || fields.at < timestamp(clock.now() - keptMs) ? undefined : fields;
    },
    forget: (nodeIds) => reports.remove(nodeIds),
    metrics: () => [taken],
    close: () => loop.close(),
  };
}
