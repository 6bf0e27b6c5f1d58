/**
 * Decides which instance sends a queued command to its agent: the first to insert a claim into the read store. So each
 * command is sent at most once, over any number of instances and sessions, and the claim records when, and whether the
 * agent has answered. The queue itself is in the log. Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { startLoop, timedOut, withDeadline } from '../kernel/background.js';
import { timestamp, type Clock } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import type { Collection, CollectionSpec, ReadStore, StoredDocument } from '../storage/read-store.js';

/** How long the answer to a heartbeat waits for claims; later claims are sent with the next one. */
const claimWaitMs = 500;
/** Old claims read per step. */
const purgedAtOnce = 1000;
/**
 * How long a claim is kept at least after its command has expired: far longer than the clocks of instances may differ.
 * The claim is also kept while its command is kept to be shown.
 */
const keptMs = 24 * 60 * 60_000;

const commandClaims: CollectionSpec = {
  name: 'command_claims',
  version: 1,
  index: { group: 'kind', order: 'expires_at' },
};

interface Queued<Name> {
  readonly id: string;
  readonly command: Name;
  /** RFC 3339. */
  readonly expires_at: string;
}

/** A RUN_DIAGNOSTICS that its agent has received and may still answer. */
export type Asked = StoredDocument<Claim>;

/** When a command was sent, RFC 3339, and whether the agent has answered it. */
export interface Delivered {
  readonly at: string;
  readonly answered: boolean;
}

export interface CommandClaims {
  /**
   * Claims a node's commands that are neither expired nor claimed, oldest first, at most 16, and at most one
   * RUN_DIAGNOSTICS a minute. A heartbeat waits for the answer, so it does not take long: a claim that the store has
   * not confirmed by then is returned by a later call. Returns only confirmed claims; never rejects.
   */
  claim<Name>(nodeId: string, queued: readonly Queued<Name>[]): Promise<readonly Name[]>;
  /** Those of the given commands that were sent, by id. @throws ServiceError `unavailable` */
  delivered(ids: readonly string[]): Promise<ReadonlyMap<string, Delivered>>;
  /** The RUN_DIAGNOSTICS that a node has received and may still answer. @throws ServiceError `unavailable` */
  asked(queued: readonly Queued<unknown>[]): Promise<readonly Asked[]>;
  /** The agent has answered these. @throws ServiceError `unavailable` */
  answered(asked: readonly Asked[]): Promise<void>;
  close(): Promise<void>;
}

export interface CommandClaimsDeps {
  readonly readStore: ReadStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The time to judge ages by before deleting (`store-clocks.ts`). */
  deletionTime(): number | undefined;
  /** How often expired claims are removed, in milliseconds. */
  readonly purgeEveryMs?: number;
  /** All commands currently kept, by node. */
  queued(): Iterable<readonly [nodeId: string, queued: readonly Queued<unknown>[]]>;
}

/** A document that marks this read store as holding all claims: if it is missing, the store was emptied. */
const marker = 'all_claims';
/** The only group, with all claims. */
const kind = 'claim';
const never = '9999-12-31T00:00:00.000Z';

type Claim = {
  readonly kind: typeof kind;
  readonly node_id: string;
  readonly expires_at: string;
  /** RFC 3339; null if the claim only keeps the command from being sent. */
  readonly delivered_at: string | null;
  readonly answered?: true;
};

const isDiagnosis = ({ command }: Queued<unknown>): boolean => command === 'RUN_DIAGNOSTICS';

/** If the read store was emptied, commands queued before count as sent: nobody knows which of them were. */
async function claimEarlier(claims: Collection<Claim>, { clock, queued }: CommandClaimsDeps): Promise<void> {
  if ((await claims.get(marker)) !== undefined) return;
  const now = timestamp(clock.now());
  const sent = [...queued()].flatMap(([node_id, commands]) =>
    commands
      .filter(({ expires_at }) => expires_at > now)
      .map(({ id, expires_at }) => ({ id, fields: { kind, node_id, expires_at, delivered_at: null } as const })),
  );
  await claims.insert(sent);
  await claims.insert([{ id: marker, fields: { kind, node_id: '', expires_at: never, delivered_at: null } }]);
}

/**
 * The open commands, without those that must wait. Every instance that asks at the same time claims the same
 * RUN_DIAGNOSTICS, so that only one of them sends one.
 * @param queued all commands of the node
 */
async function due<Name>(
  claims: Collection<Claim>,
  now: number,
  queued: readonly Queued<Name>[],
  open: readonly Queued<Name>[],
): Promise<Queued<Name>[]> {
  const others = open.filter((one) => !isDiagnosis(one));
  if (others.length === open.length) return others;
  const known = await claims.getMany(queued.filter(isDiagnosis).map(({ id }) => id));
  const since = timestamp(now - limits.agent.diagnostics.everyMs);
  if (known.some(({ fields }) => fields.delivered_at !== null && fields.delivered_at > since)) return others;
  const next = open.find((one) => isDiagnosis(one) && known.every(({ id }) => id !== one.id));
  return open.filter((one) => one === next || !isDiagnosis(one));
}

/** Removes claims from before a time, except those of commands that are still shown. */
async function removeOld(claims: Collection<Claim>, below: string, shown: ReadonlySet<string>): Promise<void> {
  for (let skip = 0, read = purgedAtOnce; read === purgedAtOnce;) {
    const old = await claims.find({ groups: [kind], below, direction: 'asc', skip, limit: purgedAtOnce });
    const gone = old.filter(({ id }) => !shown.has(id)).map(({ id }) => id);
    if (gone.length > 0) await claims.remove(gone);
    skip += old.length - gone.length;
    read = old.length;
  }
}

/** @throws ServiceError `unavailable` */
export async function openCommandClaims(deps: CommandClaimsDeps): Promise<CommandClaims> {
  const { readStore, clock, logger } = deps;
  const claims = await readStore.collection<Claim>(commandClaims);
  await claimEarlier(claims, deps);
  /** Expiry by id of commands claimed by any instance, so that not every heartbeat asks the store again. */
  const claimedIds = new Map<string, string>();
  /** Nodes with a claim in progress: the next call does not wait for it again. */
  const underWay = new Set<string>();
  /** Claims of this instance, by node, that were confirmed after the call had returned. */
  const late = new Map<string, Queued<unknown>[]>();
  let failing = false;

  /** The commands that this instance has claimed in one write; none when the store fails. */
  async function claimAll<Name>(
    nodeId: string,
    queued: readonly Queued<Name>[],
    open: readonly Queued<Name>[],
    room: number,
  ): Promise<Queued<Name>[]> {
    underWay.add(nodeId);
    try {
      const wanted = (await due(claims, clock.now(), queued, open)).slice(0, room);
      if (wanted.length === 0) return [];
      const claim = { kind, node_id: nodeId, delivered_at: timestamp(clock.now()) } as const;
      const inserted = new Set(
        await claims.insert(wanted.map(({ id, expires_at }) => ({ id, fields: { ...claim, expires_at } }))),
      );
      for (const { id, expires_at } of wanted) claimedIds.set(id, expires_at);
      failing = false;
      return wanted.filter(({ id }) => inserted.has(id));
    } catch (error) {
      // Logged once per outage, because every node with a queue returns with each heartbeat.
      if (!failing) logger.warn({ node_id: nodeId, error: errorText(error) }, 'commands to agents cannot be claimed');
      failing = true;
      return [];
    } finally {
      underWay.delete(nodeId);
    }
  }

  /** The late claims of a node, except commands that have expired or left the queue. */
  function takeLate<Name>(nodeId: string, queued: readonly Queued<Name>[], now: string): Queued<Name>[] {
    const ids = new Set(late.get(nodeId)?.map(({ id }) => id));
    late.delete(nodeId);
    return queued.filter(({ id, expires_at }) => ids.has(id) && expires_at > now);
  }

  /** Forgets claims whose command has expired, and removes claims from the store that are no longer shown. */
  async function purge(): Promise<void> {
    const now = timestamp(clock.now());
    for (const [id, expires] of claimedIds) if (expires <= now) claimedIds.delete(id);
    for (const [nodeId, queued] of late) if (queued.every(({ expires_at }) => expires_at <= now)) late.delete(nodeId);
    const time = deps.deletionTime();
    if (time === undefined) return;
    const shown = new Set([...deps.queued()].flatMap(([, queued]) => queued.map(({ id }) => id)));
    await removeOld(claims, timestamp(time - keptMs), shown);
  }
  const loop = startLoop(
    deps.purgeEveryMs ?? limits.agent.commandExpiryMs,
    purge,
    logsWarning(logger, 'expired claims of commands could not be removed'),
  );

  return {
    async claim<Name>(nodeId: string, queued: readonly Queued<Name>[]) {
      const now = timestamp(clock.now());
      const earlier = takeLate(nodeId, queued, now);
      const open = queued.filter(({ id, expires_at }) => expires_at > now && !claimedIds.has(id));
      const room = limits.agent.commandsPerHeartbeat - earlier.length;
      if (open.length === 0 || room <= 0 || underWay.has(nodeId)) return earlier.map(({ command }) => command);
      const claiming = claimAll(nodeId, queued, open, room);
      const claimed = await withDeadline(claiming, claimWaitMs);
      if (claimed === timedOut) {
        void claiming.then((confirmed) => {
          if (confirmed.length > 0) late.set(nodeId, [...(late.get(nodeId) ?? []), ...confirmed]);
        });
        return earlier.map(({ command }) => command);
      }
      return [...earlier, ...claimed].map(({ command }) => command);
    },
    async delivered(ids) {
      const found = await claims.getMany(ids);
      return new Map(
        found.flatMap(({ id, fields: { delivered_at: at, answered = false } }) =>
          at === null ? [] : [[id, { at, answered }] as const],
        ),
      );
    },
    async asked(queued) {
      const now = timestamp(clock.now());
      const open = queued.filter((one) => isDiagnosis(one) && one.expires_at > now);
      if (open.length === 0) return [];
      const known = await claims.getMany(open.map(({ id }) => id));
      return known.filter(({ fields }) => fields.delivered_at !== null && fields.answered === undefined);
    },
    answered: (asked) => claims.set(asked.map(({ id, fields }) => ({ id, fields: { ...fields, answered: true } }))),
    close: () => loop.close(),
  };
}
