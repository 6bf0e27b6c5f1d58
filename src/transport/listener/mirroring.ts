/**
 * Serves the connections that REALITY meets: each belongs to the target, within limits of number, bytes and time, until
 * it turns out to be an agent's and is handed over. `reality/` tells agents from strangers.
 */
import type { Clock } from '../../kernel/clock.js';
import { unreachable } from '../../kernel/errors.js';
import type { SampledLog } from '../../kernel/sampled-log.js';
import type { Connection } from './connection.js';
import type { ConnectionTable, Entry } from './connection-table.js';
import type { StrangerReason } from './reality/authenticate.js';
import type { Met, Reality } from './reality/reality.js';
import { isSpent } from './reality/spent.js';

/** How many connections had each outcome. */
export type MetCounts = Readonly<Record<Met['kind'], number>>;

/** Why the listener must close a mirrored connection. */
export type MirrorClosing = 'crowded' | 'no_target' | 'unfinished';

interface MirroringDeps {
  readonly reality: Reality;
  /** How many connections may be mirrored at once. */
  readonly atOnce: number;
  readonly table: ConnectionTable<Connection>;
  readonly clock: Clock;
  readonly refusals: Pick<SampledLog, 'note'>;
  close(entry: Entry<Connection>, reason: MirrorClosing): void;
  /** Takes an agent's connection; its stream is the one inside. */
  handOver(entry: Entry<Connection>): void;
}

/** Input that anybody may send is not worth a line; the effect of an agent's wrong setting is. */
const strangers: { readonly [reason in Exclude<StrangerReason, 'other'>]: string } = {
  server_name: 'a ClientHello asked for a name that is not in SVC_REALITY_SERVER_NAMES; the target answered it',
  short_id: 'an agent knows the public key, but its short id is not in SVC_REALITY_SHORT_IDS; the target answered it',
  clock: 'the clock of an agent differs by more than SVC_REALITY_MAX_TIME_DIFF_MS; the target answered it',
  replayed: 'a ClientHello from an agent arrived a second time; the target answered it',
};
const unusableTarget =
  'the target answered an agent itself: expected a SVC_REALITY_TARGET that speaks TLS 1.3 with X25519 or X25519MLKEM768 and asks for no client certificate';

export type Mirroring = ReturnType<typeof createMirroring>;

export function createMirroring(deps: MirroringDeps) {
  const { reality, table, clock, refusals } = deps;
  const counts = { agent: 0, stranger: 0, unusable_target: 0, no_target: 0, unfinished: 0 };
  const note = ({ remoteAddress }: Connection, reason: string, sentence: string): void =>
    refusals.note({ reason, address: remoteAddress }, sentence);

  const settle = (entry: Entry<Connection>, met: Met): void => {
    const { value: connection } = entry;
    counts[met.kind] += 1;
    switch (met.kind) {
      case 'agent':
        connection.watch(undefined);
        connection.stream = met.stream;
        connection.answered();
        deps.handOver(entry);
        return;
      case 'stranger':
        if (met.reason !== 'other') note(connection, `reality_${met.reason}`, strangers[met.reason]);
        return;
      case 'unusable_target':
        note(connection, 'reality_unusable_target', unusableTarget);
        return;
      case 'no_target':
      case 'unfinished':
        deps.close(entry, met.kind);
        return;
      default:
        unreachable(met);
    }
  };

  const many = (): boolean => table.kinds().mirrored > deps.atOnce / 2;

  return {
    counts: (): MetCounts => ({ ...counts }),
    /** True while so many connections are mirrored that silent or old ones must make room. */
    many,
    /** Resolves when the connection is over or handed over. */
    async mirror(entry: Entry<Connection>): Promise<void> {
      const { value: connection } = entry;
      table.mirrored(entry, connection.remoteAddress, clock.monotonic());
      connection.watch(isSpent(connection.socket, clock, many));
      const oldest = table.longestMirrored();
      if (oldest !== undefined && table.kinds().mirrored > deps.atOnce) deps.close(oldest, 'crowded');
      await reality.meet(connection.socket, (met) => settle(entry, met));
    },
  };
}
