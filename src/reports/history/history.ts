/**
 * The history of nodes, chains, upstreams and the fleet: points of a minute for an hour (`minutes.ts`), of five minutes for a day,
 * and hourly points for 30 days. The open five-minute slot is gathered in memory and written once when it is over
 * (`documents.ts`). Implements decisions 340, 341 and 360.
 */
import { startLoop } from '../../kernel/background.js';
import { timestamp, type Clock } from '../../kernel/clock.js';
import { logsWarning, type Logger } from '../../kernel/logger.js';
import { getOrMake } from '../../kernel/maps.js';
import { tuning } from '../tuning.js';
import { openHistoryDocuments, type HistoryDocumentsDeps, type StepName } from './documents.js';
import { keepMinutes } from './minutes.js';
import { add, hoursOf, joinHours, slotMs, type Growth, type Point, type Points } from './points.js';

/** How long after its end a slot still takes reports. */
const graceMs = 60_000;
const writeEveryMs = 5_000;
const foldEveryMs = 10 * 60_000;

/** The amount that a report adds to a resource. */
export type Share = readonly [resourceId: string, growth: Growth];

/** The steps of points. Those of a minute are in memory, from the start of this instance on. */
export type HistoryStep = '1m' | StepName;

export interface History {
  /** When this instance began to record minutes, milliseconds since the epoch. */
  readonly since: number;
  /** Adds to the points of a node; if the slot is already written, to the next one. @param at milliseconds since the epoch */
  count(nodeId: string, at: number, shares: readonly Share[]): void;
  /** Adds, to minutes only, what another instance counts. */
  countHere(nodeId: string, at: number, shares: readonly Share[]): void;
  /**
   * The points of a resource since a time, and some earlier ones, without the open slots of other instances. Keyed by
   * the node that counted them; points of minutes by the resource itself.
   * @throws ServiceError `unavailable`
   */
  read(resourceId: string, step: HistoryStep, from: number): Promise<ReadonlyMap<string, Points>>;
  /** Sets the round trip of a resource in the current minute. @param us microseconds */
  roundTrip(resourceId: string, us: number): void;
  /** Writes finished slots, as the loop does. @throws ServiceError `unavailable` */
  flush(): Promise<void>;
  /** Merges old slots into hours and deletes old hours, as the loop does. @internal exported for tests */
  fold(signal?: AbortSignal): Promise<void>;
  /** Writes the open slots too. */
  close(): Promise<void>;
}

interface HistoryDeps extends HistoryDocumentsDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** @throws ServiceError `unavailable` */
export async function openHistory(deps: HistoryDeps, instanceId: string): Promise<History> {
  const { clock, logger } = deps;
  const documents = await openHistoryDocuments(deps, instanceId);
  const minutes = keepMinutes(clock);
  const countHere: History['countHere'] = (_nodeId, at, shares) => {
    for (const [resourceId, growth] of shares) minutes.count(resourceId, at, growth);
  };
  /** Points not written yet, by slot, node and resource. */
  const open = new Map<number, Map<string, Map<string, Point>>>();
  /** Earlier slots are written, or being written. */
  let firstOpen = 0;
  const slotAt = (time: number): number => Math.floor(time / slotMs);
  /** A clock that was far ahead has closed slots of the future. The present one may be written already. */
  const firstOpenNow = (): number => {
    const now = slotAt(clock.now());
    return firstOpen > now + tuning.openSlots ? now + 1 : firstOpen;
  };

  const writeBefore = async (end: number): Promise<void> => {
    firstOpen = Math.max(firstOpenNow(), end);
    for (const [slot, byNode] of open) {
      if (slot >= firstOpen) continue;
      const nodes = [...byNode].map(([nodeId, points]) => ({ nodeId, points }));
      await documents.write(slot, nodes, (written) => {
        for (const { nodeId } of written) byNode.delete(nodeId);
      });
      open.delete(slot);
    }
  };
  // One at a time, because a write reads, changes and writes a document.
  let writing = Promise.resolve();
  const write = (end: number): Promise<void> => {
    const turn = writing.then(() => writeBefore(end));
    writing = turn.catch(() => undefined);
    return turn;
  };
  const flush = (): Promise<void> => write(slotAt(clock.now() - graceMs));

  const warn = (text: string) => logsWarning(logger, text);
  const loops = [
    startLoop(writeEveryMs, flush, warn('points of history could not be written yet')),
    startLoop(foldEveryMs, documents.fold, warn('old points of history could not be merged yet')),
  ];

  return {
    since: minutes.since,
    countHere,
    roundTrip: minutes.roundTrip,
    count(nodeId, at, shares) {
      countHere(nodeId, at, shares);
      const slot = Math.max(slotAt(at), firstOpenNow());
      for (const [resourceId, growth] of shares) {
        const byNode = getOrMake(open, slot, () => new Map());
        add(
          getOrMake(byNode, nodeId, () => new Map()),
          resourceId,
          growth,
        );
      }
      if (open.size <= tuning.openSlots) return;
      // The read store has been away for too long.
      const oldest = Math.min(...open.keys());
      open.delete(oldest);
      logger.warn({ slot: timestamp(oldest * slotMs) }, 'points of history that could not be written are given up');
    },
    async read(resourceId, step, from) {
      if (step === '1m') return new Map([[resourceId, minutes.read(resourceId)]]);
      const slotsByNode = new Map<string, Map<number, Point>>();
      const slotsOf = (nodeId: string) => getOrMake(slotsByNode, nodeId, () => new Map());
      // Before the stored points, so that a slot written meanwhile is seen twice instead of missed.
      for (const [slot, byNode] of open) {
        for (const [nodeId, points] of byNode) {
          const point = points.get(resourceId);
          if (point !== undefined) slotsOf(nodeId).set(slot, { ...point });
        }
      }
      const seen = new Map([...slotsByNode].map(([nodeId, points]) => [nodeId, new Set(points.keys())]));
      const hoursByNode = new Map<string, Map<number, Point>>();
      const hoursAt = (nodeId: string) => getOrMake(hoursByNode, nodeId, () => new Map());
      for await (const { nodeId, own, points, ...of } of documents.read(resourceId, step, from)) {
        if (of.step === '1h') joinHours(hoursAt(nodeId), points);
        else {
          for (const [slot, point] of points) {
            if (!own || seen.get(nodeId)?.has(slot) !== true) add(slotsOf(nodeId), slot, point);
          }
        }
      }
      if (step === '5m') return slotsByNode;
      for (const [nodeId, points] of slotsByNode) joinHours(hoursAt(nodeId), hoursOf(points));
      return hoursByNode;
    },
    flush,
    fold: documents.fold,
    async close() {
      await Promise.all(loops.map((loop) => loop.close()));
      await write(Number.POSITIVE_INFINITY).catch(warn('the newest points of history were not written'));
    },
  };
}
