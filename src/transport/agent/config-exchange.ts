/**
 * One session's exchange with delivery: its ConfigRequests and apply reports in order, and which snapshot was pushed to
 * it last. What a node should run is delivery's decision.
 * Implements `docs/contract/agent-protocol.md#configuration`.
 */
import type { ApplyReport, ConfigAnswer, Delivery, NodeSession, PushSlot, SnapshotPush } from '../../delivery/port.js';
import { withDeadline } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { timestamp } from '../../kernel/clock.js';
import { createSerialQueue } from './serial-queue.js';
import { tuning } from './tuning.js';

interface ConfigExchangeDeps {
  readonly delivery: Pick<Delivery, 'openNodeSession'>;
  readonly clock: Clock;
  onAnswer(answer: ConfigAnswer): void;
  onFailed(error: unknown): void;
  /** A request or a report is done. */
  onProgress(): void;
}

interface ConfigExchange {
  /** Opens the node session of delivery, which offers snapshots to `slot` from the first ConfigRequest on. */
  open(nodeId: string, sessionId: string, slot: PushSlot): void;
  request(version: bigint, checksum: Uint8Array): void;
  report(outcome: ApplyReport): void;
  /** The peer's window has taken a whole snapshot. */
  sent(push: SnapshotPush): void;
  /** The snapshot that was sent last, and when. */
  readonly pushed: { readonly generation: number; readonly at: string } | undefined;
  /** Requests and reports not done yet. */
  readonly waiting: number;
  close(): void;
}

export function createConfigExchange(deps: ConfigExchangeDeps): ConfigExchange {
  let nodeSession: NodeSession | undefined;
  let pushed: ConfigExchange['pushed'];
  const queue = createSerialQueue(deps.onFailed, deps.onProgress);

  const report = async (outcome: ApplyReport): Promise<void> => nodeSession?.report(outcome);

  return {
    open(nodeId, sessionId, slot) {
      nodeSession = deps.delivery.openNodeSession(nodeId, sessionId, slot);
    },
    request(version, checksum) {
      queue.run(async () => {
        const answer = await nodeSession?.request(version, checksum);
        if (answer !== undefined) deps.onAnswer(answer);
      });
    },
    report(outcome) {
      // The report becomes a fact, which waits while the event store is away; the requests behind it must not.
      queue.run(async () => void (await withDeadline(report(outcome), tuning.reportWaitMs)));
    },
    sent(push) {
      pushed = { generation: push.generation, at: timestamp(deps.clock.now()) };
      nodeSession?.sent(push);
    },
    get pushed() {
      return pushed;
    },
    get waiting() {
      return queue.size;
    },
    close() {
      queue.close();
      nodeSession?.close();
    },
  };
}
